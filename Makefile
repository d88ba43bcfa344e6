# Motley, in one word each; every target sets up what it needs. `make help` lists them.
BUILD := build/release
JOBS ?= $(shell tools/jobs)
PYTHON := build/venv/bin/python
NINJA := cmake --build $(BUILD) -j $(JOBS)
CLANG_FORMAT ?= $(firstword $(shell command -v clang-format-19 || command -v clang-format || echo clang-format-19))
SOURCES := git ls-files -co --exclude-standard '*.cpp' '*.h'

.DEFAULT_GOAL := build
.PHONY: help setup build demo demo-cpp test unit coverage bench-python bench bench-build bench-one bench-planner bench-transport bench-codec bench-server bench-link bench-lab bench-ray bench-plan bench-scale bench-rounds bench-auto bench-data bench-reaction bench-chaos bench-memory bench-head-memory bench-quality bench-rounds-quality bench-rounds-vision bench-accelerator wheels docs sbom fmt fmt-check clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1 — /p' $(MAKEFILE_LIST)

setup: ## install what building and testing need (apt or brew, build/venv)
	@tools/bootstrap test

build: ## build the program: build/motley, the command of the Python package in build/python-env
	@tools/bootstrap demo
	@JOBS=$(JOBS) tools/python_env

demo: build ## train a CNN on Fashion-MNIST on this machine
	build/motley train fashion-cnn

demo-cpp: ## the same with a program in C++ (examples/cpp), against the library as it is installed
	@tools/bootstrap test
	@tools/configure
	@$(NINJA) --target motley
	@tools/example_cpp
	build/cpp/fashion_cnn

test: ## build everything and run the tests, with ALL=1 the nightly ones too; in the end which suites failed
	@tools/bootstrap test
	@tools/configure MOTLEY_BUILD_TESTS=ON
	@$(NINJA)
	@JOBS=$(JOBS) tools/python_env
	@tools/run_tests $(if $(ALL),--all)

unit: ## the C++ tests alone
	@tools/bootstrap test
	@tools/configure MOTLEY_BUILD_TESTS=ON
	@$(NINJA)
	ctest --test-dir $(BUILD) -j2 --output-on-failure

coverage: ## which lines of the C++ core its tests run
	@tools/bootstrap test
	@tools/coverage

bench: bench-one bench-python bench-planner bench-transport bench-codec bench-server bench-link bench-lab bench-ray bench-plan bench-rounds bench-auto bench-data bench-reaction bench-chaos bench-memory bench-head-memory bench-quality bench-accelerator ## all benchmarks but bench-scale, bench-rounds-quality and bench-rounds-vision

bench-build:
	@tools/bootstrap bench
	@JOBS=$(JOBS) tools/python_env
	@tools/configure MOTLEY_BUILD_BENCHMARKS=ON
	@$(NINJA) --target planner_bench prediction_bench wire_bench codec_bench server_bench

bench-one: build ## one local worker of a recipe beside a plain PyTorch loop; seconds to the first step
	$(PYTHON) bench/one_worker.py
	$(PYTHON) bench/startup.py
	$(PYTHON) bench/startup.py

bench-python: build ## one worker of a Python script beside a plain PyTorch loop; an empty body of an epoch
	$(PYTHON) bench/python_script.py
	$(PYTHON) bench/empty_body.py
	$(PYTHON) bench/compared_data.py

bench-planner: bench-build ## time to plan a pass of 8 and of 64 devices; how well passes are predicted
	$(BUILD)/bench/planner_bench
	$(BUILD)/bench/prediction_bench

bench-transport: bench-build ## frames over loopback beside raw sockets and OpenSSL; beside Gloo's all-reduce
	$(BUILD)/bench/wire_bench
	$(PYTHON) bench/gloo_wire.py

bench-codec: bench-build ## encoding and decoding gradients beside a memcpy; their bytes on a link (Linux, root)
	$(BUILD)/bench/codec_bench
	$(PYTHON) bench/lab_codecs.py

bench-server: bench-build ## a step of the parameter server, its time and memory
	$(BUILD)/bench/server_bench
	$(BUILD)/bench/server_bench --parameters 124000000 --threads 2

bench-link: bench-build ## `motley bench link` between two hosts beside iperf3 (Linux, root)
	$(PYTHON) bench/lab_link.py

bench-quality: bench-build ## what codecs cost in quality: gpt-mini, 2,000 steps; fashion-cnn, 5 epochs, 3 seeds (half an hour)
	$(PYTHON) bench/quality.py

bench-rounds-quality: setup ## what rounds of local steps cost in quality, on a card where there is one (else a day)
	$(PYTHON) bench/rounds_quality.py

bench-rounds-vision: setup ## what rounds of local steps cost an image model in quality, on a processor (ten minutes)
	$(PYTHON) bench/rounds_vision.py

bench-accelerator: bench-build ## demo, parity and throughput on a card; says so where there is none
	$(PYTHON) bench/accelerator.py

bench-lab: bench-build ## unequal hosts of the emulated LAN beside PyTorch DDP (Linux, root)
	$(PYTHON) bench/lab.py
	$(PYTHON) bench/lab.py --recipe gpt-mini

bench-ray: build ## a run on a Ray cluster beside the same without Ray (Linux, root)
	$(PYTHON) bench/ray_lab.py

bench-plan: bench-build ## predicted against reached speed over mixes, links and models (Linux, root)
	$(PYTHON) bench/lab_plan.py

bench-scale: bench-build ## 8, 32 and 128 simulated workers, models of 25.6 million and a billion parameters: seconds a step, memory (Linux; hours)
	@$(NINJA) --target motley_sim_scale
	$(PYTHON) bench/sim_scale.py

bench-rounds: bench-build ## how much of the time hosts compute in rounds over slow links (Linux, root)
	$(PYTHON) bench/lab_rounds.py

bench-auto: bench-build ## what train.mode=auto takes on links of the lab, and whether it was right (Linux, root; half an hour)
	$(PYTHON) bench/lab_auto.py

bench-data: build ## a machine with an empty disk fetches data beside a run: link, steps, first lease (Linux, root)
	$(PYTHON) bench/lab_data.py
	$(PYTHON) bench/lab_address.py

bench-reaction: bench-build ## how soon shares follow a machine or a link that slows down (Linux, root)
	$(PYTHON) bench/lab_reaction.py
	$(PYTHON) bench/lab_drift.py
	$(PYTHON) bench/lab_throttle.py

bench-chaos: bench-build ## ten minutes in which workers are killed, frozen and cut off, and liars join (Linux, root)
	$(PYTHON) bench/lab_chaos.py

bench-head-memory: bench-build ## memory of a head beside members that flood it or read nothing, strangers, 256 members (Linux)
	$(PYTHON) bench/head_memory.py

bench-memory: bench-build ## random models and batches under a memory limit: nobody dies (Linux, root)
	$(PYTHON) bench/memory.py

wheels: ## wheels for Linux, macOS and Windows, from Linux x86-64: build/wheels/dist; TARGETS=linux-x86_64 for some
	@tools/bootstrap wheels
	@$(PYTHON) tools/wheels --jobs $(JOBS) $(TARGETS)

docs: ## write docs/reference/python.md from the docstrings
	@python3 tools/api_reference.py

sbom: ## write what Motley is made of to build/motley.cdx.json (CycloneDX)
	@mkdir -p build
	@python3 tools/sbom.py >build/motley.cdx.json
	@echo build/motley.cdx.json

fmt: ## format all C++ files
	@$(SOURCES) | xargs $(CLANG_FORMAT) -i

fmt-check: ## fail if a C++ file is not formatted
	@$(SOURCES) | xargs $(CLANG_FORMAT) --dry-run --Werror

clean: ## delete what was built, but not the Python environment
	rm -rf $(BUILD) build/wheel-* build/wheels build/python-env build/prefix build/cpp build/coverage build/dev build/asan build/tsan build/tidy build/motley
