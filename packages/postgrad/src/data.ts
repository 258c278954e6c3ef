/** The door `postgrad/data`: datasets, samplers, the DataLoader, readers of files. PyTorch: `torch.utils.data`. */
export * from '@postgrad/data'
