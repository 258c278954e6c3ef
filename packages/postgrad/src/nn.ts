/** The door `postgrad/nn`: modules, losses, initial values, weights in files. PyTorch: `torch.nn`. */
export * from '@postgrad/nn/modules'
