"""Programs that draw what they learn to make."""

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import Dataset, TensorDataset

from programs.plain import SEED, Program, plainly_in_groups, seeded

SIDE = 8
PIXELS = SIDE * SIDE


def pictures(count=180):
    """A bright bar somewhere, in [0, 1]."""
    generator = torch.Generator().manual_seed(8)
    places = torch.randint(SIDE, (count,), generator=generator)
    images = 0.1 * torch.rand(count, 1, SIDE, SIDE, generator=generator)
    images[torch.arange(count), 0, places] += 0.8
    return images


# --- a variational autoencoder ------------------------------------------------------------------------------------------------


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc21, self.fc22 = nn.Linear(PIXELS, 24), nn.Linear(24, 4), nn.Linear(24, 4)
        self.fc3, self.fc4 = nn.Linear(4, 24), nn.Linear(24, PIXELS)

    def forward(self, x):
        h = torch.relu(self.fc1(x.flatten(1)))
        mu, log_var = self.fc21(h), self.fc22(h)
        std = torch.exp(0.5 * log_var)
        z = mu + torch.randn_like(std) * std
        return torch.sigmoid(self.fc4(torch.relu(self.fc3(z)))), mu, log_var


def vae_loss(model, batch):
    (x,) = batch
    again, mu, log_var = model(x)
    bce = functional.binary_cross_entropy(again, x.flatten(1), reduction="sum")
    kld = -0.5 * torch.sum(1 + log_var - mu.pow(2) - log_var.exp())
    return (bce + kld) / len(x)


def vae():
    model = Vae()
    return Program(model, vae_loss, TensorDataset(pictures()), torch.optim.Adam(model.parameters(), lr=2e-3), plainly_in_groups, batch=160)


# --- diffusion -----------------------------------------------------------------------------------------------------------------

STEPS = 50


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.time = nn.Embedding(STEPS, 8)
        self.first, self.middle, self.last = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 1, 3, padding=1)
        betas = torch.linspace(1e-3, 0.1, STEPS)
        self.register_buffer("alphas", torch.cumprod(1 - betas, 0), persistent=False)

    def forward(self, x, t):
        h = functional.silu(self.first(x) + self.time(t)[:, :, None, None])
        return self.last(functional.silu(self.middle(h)))


def ddpm_loss(model, batch):
    (x0,) = batch
    x0 = 2 * x0 - 1
    t = torch.randint(0, STEPS, (x0.shape[0],), device=x0.device)
    noise = torch.randn_like(x0)
    alpha = model.alphas[t][:, None, None, None]
    noisy = alpha.sqrt() * x0 + (1 - alpha).sqrt() * noise
    return functional.mse_loss(model(noisy, t), noise)


def ddpm():
    model = Denoiser()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    return Program(model, ddpm_loss, TensorDataset(pictures()), optimizer, plainly_in_groups, batch=160)


# --- a critic and a generator: two losses at the same weights ---------------------------------------------------------------------


class WithNoise(Dataset):
    """Pictures with what a step draws for each: noise for the generator, and where between true and false the penalty is taken."""

    def __init__(self):
        self.images = pictures()

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index].flatten(), torch.randn(4), torch.rand(1)


def wgan_losses(generator, critic, batch):
    """Of every sample: the critic's with its penalty, and the generator's."""
    real, noise, between = batch
    fake = generator(noise)
    mixed = (between * real + (1 - between) * fake.detach()).requires_grad_()
    (slope,) = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
    penalty = (slope.norm(2, dim=1) - 1) ** 2
    return critic(fake.detach())[:, 0] - critic(real)[:, 0] + 10 * penalty, -critic(fake)[:, 0]


def wgan_loop(program, leases):
    generator, critic = program.model
    for lease in leases:
        for batch in lease:
            of_critic, of_generator = wgan_losses(generator, critic, batch)
            of_generator.sum().backward(inputs=list(generator.parameters()), retain_graph=True)
            of_critic.sum().backward(inputs=list(critic.parameters()))
            lease.add(of_critic.sum(), len(of_critic))


def wgan():
    """Both move in every step."""
    generator = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, PIXELS), nn.Sigmoid())
    critic = nn.Sequential(nn.Linear(PIXELS, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))
    groups = [{"params": generator.parameters(), "lr": 1e-3}, {"params": critic.parameters(), "lr": 4e-3}]
    optimizer = torch.optim.Adam(groups, betas=(0.0, 0.9))
    return Program((generator, critic), None, WithNoise(), optimizer, wgan_plainly, own_loop=wgan_loop)


def every_third(step):
    return float(step % 3 == 2)


class AdamInTurns(torch.optim.Adam):
    """A group whose learning rate is 0 in a step rests: its moments stay as they are, too."""

    def step(self, closure=None):
        resting = [(p, p.grad) for group in self.param_groups if group["lr"] == 0 for p in group["params"]]
        for parameter, _ in resting:
            parameter.grad = None
        super().step(closure)
        for parameter, gradient in resting:
            parameter.grad = gradient


def wgan_in_turns():
    """The generator moves in every third step."""
    program = wgan()
    program.optimizer = AdamInTurns(program.optimizer.param_groups, betas=(0.0, 0.9))
    program.options = {"schedule_every": "step",
                       "schedule": torch.optim.lr_scheduler.LambdaLR(program.optimizer, [every_third, lambda step: 1.0])}
    program.plain = lambda program: wgan_plainly(program, in_turns=True)
    return program


def wgan_plainly(program, in_turns=False):
    """Two optimizers, as usual."""
    generator, critic = program.model
    of_generator, of_critic = (torch.optim.Adam(module.parameters(), lr=lr, betas=(0.0, 0.9))
                               for module, lr in zip(program.model, (1e-3, 4e-3), strict=True))
    for step, numbers in program.batches():
        samples = []
        for position, number in enumerate(numbers):
            torch.manual_seed(seeded(SEED, step, position))
            samples.append(program.data[number])
        critic_loss, generator_loss = (each.mean() for each in wgan_losses(generator, critic, program.collate(samples)))
        of_generator.zero_grad()
        generator_loss.backward(retain_graph=True)
        of_critic.zero_grad()
        critic_loss.backward()
        if not in_turns or step % 3 == 2:
            of_generator.step()
        of_critic.step()
        yield critic_loss.item()
