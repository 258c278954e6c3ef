/** `postgrad completion`: a script by which a shell completes commands, options and their values. */
import { Argument, type Command } from 'commander'
import { SHELLS, type Shell, scriptOf } from '../completion/scripts.js'
import { treeOf } from '../completion/tree.js'
import { type CommandContext, command } from './context.js'

export function completionCommand({ around }: CommandContext, cli: () => Command): Command {
  return command('completion', 'print a script by which a shell completes this command line', HELP)
    .addArgument(new Argument('<shell>', 'whose').choices(SHELLS))
    .action((shell: Shell) => {
      around.stdout.write(scriptOf(shell, treeOf(cli())))
    })
}

const HELP = `
Examples:
  $ source <(postgrad completion bash)
  $ postgrad completion bash > ~/.local/share/bash-completion/completions/postgrad
  $ postgrad completion zsh > ~/.zfunc/_postgrad         (a folder of $fpath)
  $ postgrad completion fish > ~/.config/fish/completions/postgrad.fish`
