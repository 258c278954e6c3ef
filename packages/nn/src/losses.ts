/** Losses as functions. They are operations (PyTorch: `torch.nn.functional`), and live with the others in autograd. */
export { crossEntropy, mseLoss, nllLoss } from '@postgrad/autograd'
