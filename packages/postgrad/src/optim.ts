/** The door `postgrad/optim`: optimizers and schedulers of their settings. PyTorch: `torch.optim`, `torch.optim.lr_scheduler`. */
export * from '@postgrad/nn/optim'
