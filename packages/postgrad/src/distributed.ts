/** The door `postgrad/distributed`: process groups and their collectives. PyTorch: `torch.distributed`. */
export * from '@postgrad/process-group'
