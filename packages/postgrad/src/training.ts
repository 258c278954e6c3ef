/** The door `postgrad/training`: what a training loop writes, shows and draws. PyTorch: `torch.utils.tensorboard`; Python: `tqdm`. */
export * from '@postgrad/training'
