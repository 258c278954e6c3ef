/** What sibling packages get beyond the public names: the parts that LSTM is made of. */
export { lstmCell, unbind } from './lstm-cell.js'
