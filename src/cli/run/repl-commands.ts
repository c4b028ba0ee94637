import type { Agent } from '../../api/v1alpha1/agent.ts';
import { printable } from '../../lib/printable.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import { table } from '../table.ts';

const HELP = [
  ['/help', 'print this list'],
  ['/tools', 'the forged tools that the agent can call, and its grants'],
  ['/usage', 'turns, calls, tokens and cost of this run'],
  ['/session', 'the name of this session, and how to continue it'],
  ['/exit', 'end the run; Ctrl-D does the same'],
] as const;

export interface ReplState {
  agent: Agent;
  session: string;
  /** The `--state` option as typed. */
  state: string;
  forgedTools: () => readonly RegisteredTool[];
  usage: () => string;
}

/** The output of a command of the prompt; `exit` ends the run; undefined when the line is a message for the agent. */
export function replCommand(line: string, repl: ReplState): { text: string } | 'exit' | undefined {
  const word = line.trim();
  if (!/^\/[a-z]+$/.test(word)) return undefined;
  switch (word) {
    case '/exit':
    case '/quit':
      return 'exit';
    case '/help':
      return { text: help() };
    case '/usage':
      return { text: `${repl.usage()}\n` };
    case '/session':
      return { text: sessionText(repl) };
    case '/tools':
      return { text: toolsText(repl) };
    default:
      return {
        text: `${word} is not a command. To send it as a message, put a space and more words after it.\n${help()}`,
      };
  }
}

function help(): string {
  const rows = HELP.map(([name, meaning]) => `  ${name.padEnd(10)}${meaning}\n`);
  return `${rows.join('')}  Everything else is a message to the agent; a paste of several lines is one message.\n`;
}

function sessionText({ agent, session, state }: ReplState): string {
  const where = state === '.temper' ? '' : ` --state ${state}`;
  return (
    `Session ${session}\n` +
    `  continue it:  temper run -f … --agent ${agent.metadata.name} --session ${session}${where}\n` +
    `  read it:      temper trace ${session}${where}\n`
  );
}

function toolsText({ agent, forgedTools }: ReplState): string {
  const rows = forgedTools().map(({ artifact, tier }) => [artifact.name, tier, artifact.description.slice(0, 100)]);
  const grants = (agent.spec.grants?.tools ?? []).map((pattern) => printable(pattern, 100)).join(', ') || 'none';
  const forged = rows.length === 0 ? 'No forged tools yet.\n' : table(['TOOL', 'TIER', 'DESCRIPTION'], rows);
  return `${forged}Granted: ${grants}\n`;
}
