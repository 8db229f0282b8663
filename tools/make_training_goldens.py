#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tests/golden/training: losses, optimizers and schedules as PyTorch computes them in float64.

Cross-entropy: logits, targets, gradients and losses by label smoothing. Optimizers: one gradient for
each of 50 steps over 17 weights in two tensors, (3, 4) and (5), and the weights after every step.
Schedules: the learning rates of 60 steps. The C++ side is tests/training.

  pip install torch numpy
  tools/make_training_goldens.py [FOLDER]
"""
import pathlib
import sys

import numpy as np
import torch
from torch.nn.functional import cross_entropy

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                      pathlib.Path(__file__).resolve().parent.parent / "tests/golden/training")
folder.mkdir(parents=True, exist_ok=True)
torch.set_default_dtype(torch.float64)
random = torch.Generator().manual_seed(20261121)


def save(name, values):
    np.save(folder / f"{name}.npy", np.ascontiguousarray(values))


logits = 3 * torch.randn(2, 4, 7, generator=random)
targets = torch.randint(0, 7, (2, 4), generator=random)
targets[0, 3] = targets[1, 1] = -100
save("logits", logits.numpy())
save("targets", targets.numpy())
losses, gradients = [], []
for smoothing in (0.0, 0.1, 1.0):
    leaf = logits.clone().requires_grad_()
    loss = cross_entropy(leaf.reshape(-1, 7), targets.reshape(-1), label_smoothing=smoothing)
    loss.backward()
    losses.append(loss.item())
    gradients.append(leaf.grad.numpy())
save("losses", np.array(losses))
save("grad_logits", np.array(gradients))

steps = 50
start = torch.randn(17, generator=random)
gradients = torch.randn(steps, 17, generator=random) * 10 ** torch.linspace(-3, 1, 17)
save("start", start.numpy())
save("gradients", gradients.numpy())
optimizers = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05),
    "sgd_momentum": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
    "sgd_nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.8, nesterov=True,
                                              weight_decay=0.02),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "adam_decay": lambda p: torch.optim.Adam(p, lr=0.01, betas=(0.8, 0.95), eps=1e-6,
                                             weight_decay=0.1),
    "adamw": lambda p: torch.optim.AdamW(p, lr=0.02, weight_decay=0.1),
}
for name, make in optimizers.items():
    parts = [start[:12].reshape(3, 4).clone().requires_grad_(),
             start[12:].clone().requires_grad_()]
    optimizer = make(parts)
    path = []
    for step in range(steps):
        parts[0].grad = gradients[step, :12].reshape(3, 4).clone()
        parts[1].grad = gradients[step, 12:].clone()
        optimizer.step()
        path.append(torch.cat([part.detach().reshape(-1) for part in parts]).numpy().copy())
    save(name, np.array(path))

schedules = {
    "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, T_max=59, eta_min=1e-4),
    "restarts": lambda o: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, T_0=8, T_mult=2),
    "steps": lambda o: torch.optim.lr_scheduler.StepLR(o, step_size=7, gamma=0.5),
}
for name, make in schedules.items():
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3)
    schedule = make(optimizer)
    rates = []
    for _ in range(60):
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    save(f"schedule_{name}", np.array(rates))
