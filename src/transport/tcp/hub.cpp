#include "transport/tcp/hub.h"

#include "base/assert.h"
#include "base/thread_name.h"

namespace motley::transport {
namespace {

constexpr std::chrono::milliseconds kGracefulTime{2500};  // a second to flush, a second to drain

/// The system sizes the buffers better than we could; but what it holds unsent can no longer be overtaken by an urgent
/// frame, so that part is kept to 4 ms of a gigabit link.
void set_network_options(Socket& socket) {
  NetError ignored;
  socket.set_option(net::ip::tcp::no_delay(true), ignored);
#ifdef TCP_NOTSENT_LOWAT
  const int unsent_bytes_max = 512 << 10;
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent_bytes_max, sizeof unsent_bytes_max);
#endif
}

Error crowded() { return {ErrorCode::refused, "too many connections that have not proven themselves", ""}; }

class TcpConnection final : public Connection {
 public:
  explicit TcpConnection(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  ~TcpConnection() override { core_->close(); }
  TcpConnection(const TcpConnection&) = delete;
  TcpConnection& operator=(const TcpConnection&) = delete;

  void start(std::shared_ptr<Receiver> receiver) override { core_->start(std::move(receiver)); }
  void send(wire::Frame frame, Priority priority) override { core_->send(std::move(frame), priority); }
  void close() override { core_->close(); }
  void set_reading(bool on) override { core_->set_reading(on); }
  std::size_t queued_bytes() const override { return core_->queued_bytes(); }
  Traffic traffic() const override { return core_->traffic(); }
  const PeerIdentity& peer() const override { return core_->peer(); }
  void mark_proven() override { core_->mark_proven(); }

 private:
  std::shared_ptr<Core> core_;
};

}  // namespace

std::shared_ptr<Connection> make_connection(std::shared_ptr<Core> core) {
  return std::make_shared<TcpConnection>(std::move(core));
}

Hub::Hub(TcpOptions options)
    : options_(std::move(options)),
      reactor_(std::make_shared<Reactor>()),
      work_(net::make_work_guard(reactor_->io)),
      gate_timer_(reactor_->io),
      silent_(options_.limits.silent_max, options_.limits.silent_per_address_max),
      strangers_(options_.limits.unproven_max, options_.limits.unproven_per_address_max),
      known_(options_.limits.knocked_max, options_.limits.knocked_max),
      knocks_(options_.knock),
      gate_(options_.limits.handshakes_per_second_max, SteadyClock::now()) {
  MOTLEY_ASSERT(options_.io_threads > 0);
  MOTLEY_ASSERT(options_.plaintext || options_.identity.has_value());
  if (!options_.plaintext) tls_ = std::make_shared<TlsContext>(*options_.identity);
  use_threads(options_.io_threads);
}

Hub::~Hub() { MOTLEY_ASSERT(threads_.empty()); }

void Hub::use_threads(std::size_t count) {
  const std::lock_guard lock(mutex_);
  while (!closing_ && threads_.size() < count) {
    threads_.emplace_back([this] {
      name_thread("motley-io");
      reactor_->io.run();
    });
  }
}

std::shared_ptr<Core> Hub::make_core(Socket socket, const Peer& peer, CoreSetup setup) {
  setup.address = peer.address;
  setup.same_machine = peer.same_machine;
  if (!peer.same_machine) {
    set_network_options(socket);
    setup.tls = tls_;
  }
  const std::lock_guard lock(mutex_);
  if (closing_) return nullptr;
  setup.id = ++last_id_;
  auto core = std::make_shared<Core>(reactor_, *this, std::move(socket), setup);
  cores_.emplace(setup.id, core);
  return core;
}

std::shared_ptr<Core> Hub::connected(Socket socket, const Peer& peer, std::optional<Digest> pin) {
  CoreSetup setup;
  setup.role = TlsRole::client;
  setup.pin = pin;
  setup.knock = options_.knock;
  return make_core(std::move(socket), peer, std::move(setup));
}

void Hub::accepted(Socket socket, std::shared_ptr<const AcceptHandler> on_accept) {
  const std::optional<Peer> peer = peer_of(socket);
  if (!peer) return;
  CoreSetup setup;
  setup.role = TlsRole::server;
  setup.proven = false;
  setup.unproven_bytes_max = options_.limits.unproven_bytes_max;
  const bool plain = options_.plaintext || peer->same_machine;
  const std::shared_ptr<Core> core = make_core(std::move(socket), *peer, std::move(setup));
  if (core == nullptr) return;
  std::shared_ptr<Core> evicted;
  {
    const std::lock_guard lock(mutex_);
    evicted = find((plain ? strangers_ : silent_).enter(core->id(), peer->source));
  }
  if (evicted != nullptr) evicted->abort(crowded());
  net::post(core->executor(), [core, time = options_.limits.unproven_time] { core->limit_unproven_time(time); });
  const Waiting waiting{core, std::move(on_accept)};
  if (plain) return begin_handshake(waiting);
  net::post(core->executor(), [this, waiting, source = peer->source] {
    const auto judge = [this](std::span<const std::byte> bytes) {
      const std::lock_guard lock(mutex_);
      return knocks_.judge(bytes);
    };
    waiting.core->hear(judge, [this, waiting, source](Knocks::Who who) { heard(waiting, source, who); });
  });
}

/// Who says nothing takes nobody's turn.
void Hub::heard(const Waiting& waiting, const std::string& source, Knocks::Who who) {
  const bool known = who == Knocks::Who::known;
  const std::uint64_t id = waiting.core->id();
  std::shared_ptr<Core> evicted;
  {
    const std::lock_guard lock(mutex_);
    silent_.leave(id);
    evicted = find((known ? known_ : strangers_).enter(id, source));
    waiting_.emplace(id, waiting);
    gate_.enter(id, known);
  }
  if (evicted != nullptr) evicted->abort(crowded());
  pump_handshakes();
}

std::shared_ptr<Core> Hub::find(std::optional<std::uint64_t> id) {
  const auto found = id ? cores_.find(*id) : cores_.end();
  return found == cores_.end() ? nullptr : found->second.lock();
}

void Hub::leave_door(std::uint64_t id) {
  silent_.leave(id);
  strangers_.leave(id);
  known_.leave(id);
}

/// Starts those whose turn it is, and comes back when the next one's is.
void Hub::pump_handshakes() {
  std::vector<Waiting> ready;
  {
    const std::lock_guard lock(mutex_);
    if (closing_) return;
    const auto now = SteadyClock::now();
    while (const auto id = gate_.next(now)) {
      const auto found = waiting_.find(*id);
      MOTLEY_ASSERT(found != waiting_.end());
      ready.push_back(std::move(found->second));
      waiting_.erase(found);
    }
    if (const auto wait = gate_.wait(now)) {
      gate_timer_.expires_after(*wait);
      gate_timer_.async_wait([this](const NetError& error) {
        if (!error) pump_handshakes();
      });
    }
  }
  for (const Waiting& waiting : ready) begin_handshake(waiting);
}

void Hub::begin_handshake(const Waiting& waiting) {
  net::post(waiting.core->executor(), [waiting] {
    waiting.core->handshake([waiting](const Status& status) {
      if (status) (*waiting.on_accept)(make_connection(waiting.core));
    });
  });
}

bool Hub::add(const std::shared_ptr<Activity>& activity) {
  const std::lock_guard lock(mutex_);
  if (closing_) return false;
  activities_.emplace(activity.get(), activity);
  return true;
}

void Hub::remove(const Activity* activity) {
  std::shared_ptr<Activity> last;  // let go outside of the lock
  const std::lock_guard lock(mutex_);
  const auto found = activities_.find(activity);
  if (found == activities_.end()) return;
  last = std::move(found->second);
  activities_.erase(found);
  if (activities_.empty() && cores_.empty()) empty_.notify_all();
}

void Hub::proven(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  leave_door(id);
}

void Hub::gone(std::uint64_t id, bool dropped) {
  Waiting last;
  const std::lock_guard lock(mutex_);
  if (dropped) ++dropped_;
  leave_door(id);
  if (const auto found = waiting_.find(id); found != waiting_.end()) {
    gate_.leave(id);
    last = std::move(found->second);
    waiting_.erase(found);
  }
  cores_.erase(id);
  if (activities_.empty() && cores_.empty()) empty_.notify_all();
}

std::vector<std::shared_ptr<Core>> Hub::all_cores() {
  std::vector<std::shared_ptr<Core>> cores;
  const std::lock_guard lock(mutex_);
  for (const auto& [id, weak] : cores_) {
    if (auto core = weak.lock()) cores.push_back(std::move(core));
  }
  return cores;
}

bool Hub::wait_until_empty(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return empty_.wait_for(lock, time, [this] { return activities_.empty() && cores_.empty(); });
}

void Hub::shut_down() {
  std::vector<std::shared_ptr<Activity>> activities;
  {
    const std::lock_guard lock(mutex_);
    for (const std::thread& thread : threads_) MOTLEY_ASSERT(thread.get_id() != std::this_thread::get_id());
    closing_ = true;
    gate_timer_.cancel();
    for (const auto& [key, activity] : activities_) activities.push_back(activity);
  }
  for (const auto& activity : activities) activity->stop();
  activities.clear();
  for (const auto& core : all_cores()) core->close();
  if (!wait_until_empty(kGracefulTime)) {
    for (const auto& core : all_cores()) core->abort({ErrorCode::network, "closed by this side", ""});
    wait_until_empty(kGracefulTime);
  }
  work_.reset();
  reactor_->io.stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  // What is left are handlers of closed sockets; each holds its connection, and so the reactor, until it has run.
  reactor_->io.restart();
  reactor_->io.poll();
  reactor_->stopped = true;
}

}  // namespace motley::transport
