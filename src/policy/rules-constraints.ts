import { isJsonObject } from '../lib/json.ts';
import type { Json } from '../lib/json.ts';
import { hostViolation, networkRules } from './rules-network.ts';
import type { Prepared } from './prepare.ts';
import type { ToolQuestion } from './questions.ts';
import { deny, escalate, notApplicable, passed } from './rules.ts';
import type { Rule, Violation } from './rules.ts';

/** What the level lets a tool touch: network, terminal, git, approval, in this order; the first that is broken decides. */
export function constraintRules(prepared: Prepared): Rule<ToolQuestion>[] {
  return [networkRule(prepared), ...terminalRules(prepared), gitRule(prepared), approvalRule(prepared)];
}

/** Members that hold the address a web tool reaches out to. */
const ADDRESS_MEMBERS = ['url', 'uri', 'href', 'endpoint'] as const;

function reachesOut({ category, action }: ToolQuestion): boolean {
  return category === 'web' || action === 'comms:external';
}

function networkRule(prepared: Prepared): Rule<ToolQuestion> {
  const { level } = prepared;
  const connection = networkRules(prepared);
  return {
    id: 'constraint.network',
    check: (request) => {
      if (!reachesOut(request)) return undefined;
      if (level.constraints.network === 'None') {
        return deny(
          `Tool "${request.name}" needs the network, and level ${level.name} has none; level restricted has.`,
        );
      }
      return request.arguments === undefined ? undefined : addressViolation(connection, request.arguments);
    },
    note: (request) =>
      reachesOut(request)
        ? passed(`level ${level.name} has network ${level.constraints.network}`)
        : notApplicable('the tool does not reach out'),
  };
}

type ConnectionRules = ReturnType<typeof networkRules>;

/** What the tool then really connects to is decided again; this spares it the start. */
function addressViolation(connection: ConnectionRules, given: Json): Violation | undefined {
  if (!isJsonObject(given)) return undefined;
  for (const name of ADDRESS_MEMBERS) {
    for (const address of [given[name]].flat()) {
      const violation = typeof address === 'string' ? urlViolation(connection, name, address) : undefined;
      if (violation !== undefined) return violation;
    }
  }
  return undefined;
}

function urlViolation(connection: ConnectionRules, name: string, address: string): Violation | undefined {
  const url = URL.parse(address);
  if (url === null) return deny(`Argument "${name}" is not an absolute URL; write https://host/path.`);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    return deny(`Argument "${name}" has scheme ${url.protocol}; only http and https are allowed.`);
  }
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  return hostViolation(connection, url.hostname, port);
}

function terminalRules(prepared: Prepared): Rule<ToolQuestion>[] {
  const { level, shell } = prepared;
  const mode = level.constraints.terminal;
  return [
    {
      id: 'constraint.terminal',
      check: ({ name, category }) =>
        category === 'terminal' && mode === 'None'
          ? deny(`Tool "${name}" is a terminal, and level ${level.name} has none; level standard has.`)
          : undefined,
      note: ({ category }) =>
        category === 'terminal' ? passed(`level ${level.name} has terminal ${mode}`) : notApplicable('no terminal'),
    },
    {
      id: 'grant.shell',
      check: (request) => (request.category === 'terminal' ? commandViolation(prepared, request) : undefined),
      note: ({ category }) =>
        category === 'terminal' ? passed(`grants.shell is ${shell.describe()}`) : notApplicable('no terminal'),
    },
  ];
}

/** What lets one command line be several, or reach beyond its words. */
const SHELL_MARKS = '*?|&;<>()$`\\"\'\n\r{}[]!#~';

function commandViolation({ level, shell }: Prepared, request: ToolQuestion): Violation | undefined {
  if (shell.size === 0) return deny(`Tool "${request.name}" runs commands, and grants.shell allows nothing.`);
  if (request.arguments === undefined) return undefined;
  const command = commandOf(request.arguments);
  if (command === undefined) return deny(`Tool "${request.name}" must be given its "command" as text.`);
  const anything = level.constraints.terminal === 'Full' && shell.patterns.some(({ text }) => /^\*+$/.test(text));
  if (!anything && hasShellMark(command)) {
    return deny('The command holds characters a shell gives a meaning to; give one plain command with its words.');
  }
  return shell.has(command)
    ? undefined
    : deny(`The command is not granted: grants.shell allows ${shell.describe()}, each for a whole command line.`);
}

function commandOf(given: Json): string | undefined {
  if (!isJsonObject(given) || typeof given.command !== 'string') return undefined;
  const words = given.args ?? [];
  if (!Array.isArray(words) || !words.every((word) => typeof word === 'string')) return undefined;
  return [given.command.trim(), ...words].join(' ');
}

function hasShellMark(command: string): boolean {
  for (const character of command) {
    if (SHELL_MARKS.includes(character)) return true;
  }
  return false;
}

function gitRule({ level }: Prepared): Rule<ToolQuestion> {
  const mode = level.constraints.git;
  return {
    id: 'constraint.git',
    check: (request) => {
      if (request.category !== 'version_control' && !request.action.startsWith('vcs:')) return undefined;
      if (mode === 'Full') return undefined;
      if (request.action === 'vcs:push') {
        return deny(`Tool "${request.name}" pushes, and level ${level.name} has git ${mode}; level standard may push.`);
      }
      if (mode === 'LocalOnly' && request.arguments !== undefined && namesRemote(request.arguments)) {
        return deny(`Tool "${request.name}" names a remote, and level ${level.name} has git LocalOnly.`);
      }
      return undefined;
    },
    note: ({ category, action }) =>
      category === 'version_control' || action.startsWith('vcs:')
        ? passed(`level ${level.name} has git ${mode}`)
        : notApplicable('no version control'),
  };
}

/** By what is asked for, not by the name of the tool: a URL, or `user@host:path`. */
function namesRemote(given: Json): boolean {
  if (!isJsonObject(given)) return false;
  return Object.values(given).some((value) => {
    if (typeof value !== 'string') return false;
    if (value.includes('://')) return true;
    const at = value.indexOf('@');
    return at > 0 && value.indexOf(':', at) > at;
  });
}

function approvalRule({ level }: Prepared): Rule<ToolQuestion> {
  const required: ReadonlySet<string> = new Set(level.constraints.requireApproval);
  return {
    id: 'constraint.approval',
    check: ({ name, action }) =>
      required.has(action)
        ? escalate(`Tool "${name}" does ${action}, which level ${level.name} leaves to a person.`)
        : undefined,
    note: () =>
      required.size === 0
        ? notApplicable(`level ${level.name} asks for no approval`)
        : passed(`level ${level.name} asks a person only for ${[...required].join(', ')}`),
  };
}
