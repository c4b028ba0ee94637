import { dottedPath, type FieldPath, type Finding, type ValidPart } from '../../findings.ts';
import type { AgentSpec } from '../../v1alpha1/agent.ts';
import { itemsOf, quoted } from '../shared.ts';

/** Programs that run code which they are given, without the numbers of their versions. */
const INTERPRETERS: ReadonlySet<string> = new Set(
  'sh bash dash ash zsh ksh fish csh tcsh busybox python pypy node nodejs deno bun perl ruby irb php lua luajit tclsh awk gawk mawk R Rscript java jshell guile sqlite ed ex vi vim nvim emacs gdb make gmake cmake ninja npm npx yarn pnpm pip cargo go gcc cc g++ c++ ld tcc docker podman'.split(
    ' ',
  ),
);

/** Programs that start other ones, as their arguments or their configuration say. */
const STARTERS: ReadonlySet<string> = new Set(
  'env xargs find fd git tar rsync ssh sudo su doas time timeout nice nohup setsid watch parallel script strace ltrace man less more sed sort rg zip'.split(
    ' ',
  ),
);

/** What the grants for programs open beyond what they seem to say. */
export function shellFindings({ grants }: ValidPart<AgentSpec>): Finding[] {
  return [...itemsOf(grants?.shell, ['spec', 'grants', 'shell'])].flatMap(([pattern, path]): Finding[] => {
    const [program = ''] = pattern.split(' ', 1);
    if (program.includes('*')) return [finding(path, pattern, EVERY_PROGRAM)];
    if (program.includes('/')) return [finding(path, pattern, WITH_FOLDER)];
    const name = program.replace(/[0-9.]+$/, '');
    if (INTERPRETERS.has(name)) return [finding(path, pattern, INTERPRETER)];
    return STARTERS.has(name) ? [finding(path, pattern, STARTER)] : [];
  });
}

interface Text {
  message: string;
  fix: string;
}

const EVERY_PROGRAM: Text = {
  message:
    'names no program: at terminal Full it grants every program, interpreters included, and with them any code in the workspace; at RestrictedCommands it has no effect',
  fix: 'name the programs, each in an entry of its own',
};
const WITH_FOLDER: Text = {
  message: 'names a folder, and has no effect: programs are named without one',
  fix: 'write the name of the program alone',
};
const INTERPRETER: Text = {
  message:
    'grants an interpreter: it runs any code in the workspace, whatever the pattern says about its arguments, and starts each program of spec.grants.shell with any arguments',
  fix: 'remove it unless the agent may do all of that',
};
const STARTER: Text = {
  message:
    'grants a program that starts others: it can start each program of spec.grants.shell with any arguments, whatever their patterns say',
  fix: 'keep it only if the other entries may have any arguments',
};

function finding(path: FieldPath, pattern: string, { message, fix }: Text): Finding {
  return { path, rule: 'shell-grant', message: `${dottedPath(path)} ${quoted(pattern)} ${message}`, fix };
}
