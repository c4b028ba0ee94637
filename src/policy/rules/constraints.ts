import { isJsonObject } from '../../lib/json.ts';
import type { Json } from '../../lib/json.ts';
import { hostViolation, networkRules } from './network.ts';
import type { PreparedPolicy } from '../prepare.ts';
import type { ToolRuleInput } from './rule-inputs.ts';
import { deny, escalate, notApplicable, passed } from './rule.ts';
import type { Rule, RuleViolation } from './rule.ts';

/** The constraints of the level, in this order: network, terminal, git, approval. The first violation decides. */
export function constraintRules(prepared: PreparedPolicy): Rule<ToolRuleInput>[] {
  return [networkRule(prepared), ...terminalRules(prepared), gitRule(prepared), approvalRule(prepared)];
}

/** Members that contain the address a web tool connects to. */
const ADDRESS_MEMBERS = ['url', 'uri', 'href', 'endpoint'] as const;

function usesNetwork({ category, action }: ToolRuleInput): boolean {
  return category === 'web' || action === 'comms:external';
}

function networkRule(prepared: PreparedPolicy): Rule<ToolRuleInput> {
  const { level } = prepared;
  const connection = networkRules(prepared);
  return {
    id: 'constraint.network',
    check: (request) => {
      if (!usesNetwork(request)) return undefined;
      if (level.constraints.network === 'None') {
        return deny(
          `Tool "${request.name}" needs the network, which level ${level.name} does not allow; level restricted allows it.`,
        );
      }
      return request.arguments === undefined ? undefined : addressViolation(connection, request.arguments);
    },
    explain: (request) =>
      usesNetwork(request)
        ? passed(`level ${level.name} has network ${level.constraints.network}`)
        : notApplicable('the tool does not use the network'),
  };
}

type ConnectionRules = ReturnType<typeof networkRules>;

/** An early check of the arguments. Each connection the tool makes is decided again. */
function addressViolation(connection: ConnectionRules, input: Json): RuleViolation | undefined {
  if (!isJsonObject(input)) return undefined;
  for (const name of ADDRESS_MEMBERS) {
    for (const address of [input[name]].flat()) {
      const violation = typeof address === 'string' ? urlViolation(connection, name, address) : undefined;
      if (violation !== undefined) return violation;
    }
  }
  return undefined;
}

function urlViolation(connection: ConnectionRules, name: string, address: string): RuleViolation | undefined {
  const url = URL.parse(address);
  if (url === null) return deny(`Argument "${name}" is not an absolute URL; write https://host/path.`);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    return deny(`Argument "${name}" has scheme ${url.protocol}; only http and https are allowed.`);
  }
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  return hostViolation(connection, url.hostname, port);
}

function terminalRules(prepared: PreparedPolicy): Rule<ToolRuleInput>[] {
  const { level, shell } = prepared;
  const mode = level.constraints.terminal;
  return [
    {
      id: 'constraint.terminal',
      check: ({ name, category }) =>
        category === 'terminal' && mode === 'None'
          ? deny(`Tool "${name}" is a terminal, which level ${level.name} does not allow; level standard allows it.`)
          : undefined,
      explain: ({ category }) =>
        category === 'terminal' ? passed(`level ${level.name} has terminal ${mode}`) : notApplicable('no terminal'),
    },
    {
      id: 'grant.shell',
      check: (request) => (request.category === 'terminal' ? commandViolation(prepared, request) : undefined),
      explain: ({ category }) =>
        category === 'terminal' ? passed(`grants.shell is ${shell.describe()}`) : notApplicable('no terminal'),
    },
  ];
}

/** Shell metacharacters: they can combine commands or expand words. */
const SHELL_METACHARACTERS = '*?|&;<>()$`\\"\'\n\r{}[]!#~';

function commandViolation({ level, shell }: PreparedPolicy, request: ToolRuleInput): RuleViolation | undefined {
  if (shell.size === 0) return deny(`Tool "${request.name}" runs commands, and grants.shell allows nothing.`);
  if (request.arguments === undefined) return undefined;
  const command = commandOf(request.arguments);
  if (command === undefined) return deny(`Tool "${request.name}" needs its "command" as text.`);
  const allowsAnything = level.constraints.terminal === 'Full' && shell.patterns.some(({ text }) => /^\*+$/.test(text));
  if (!allowsAnything && hasShellMetacharacter(command)) {
    return deny('The command contains shell metacharacters; give one plain command with its arguments.');
  }
  return shell.has(command)
    ? undefined
    : deny(`The command is not granted: grants.shell allows ${shell.describe()}, each for a whole command line.`);
}

function commandOf(input: Json): string | undefined {
  if (!isJsonObject(input) || typeof input.command !== 'string') return undefined;
  const words = input.args ?? [];
  if (!Array.isArray(words) || !words.every((word) => typeof word === 'string')) return undefined;
  return [input.command.trim(), ...words].join(' ');
}

function hasShellMetacharacter(command: string): boolean {
  for (const character of command) {
    if (SHELL_METACHARACTERS.includes(character)) return true;
  }
  return false;
}

function gitRule({ level }: PreparedPolicy): Rule<ToolRuleInput> {
  const mode = level.constraints.git;
  return {
    id: 'constraint.git',
    check: (request) => {
      if (request.category !== 'version_control' && !request.action.startsWith('vcs:')) return undefined;
      if (mode === 'Full') return undefined;
      if (request.action === 'vcs:push') {
        return deny(`Tool "${request.name}" pushes, and level ${level.name} has git ${mode}; level standard may push.`);
      }
      if (mode === 'LocalOnly' && namesRemote(request)) {
        return deny(`Tool "${request.name}" names a remote, and level ${level.name} has git LocalOnly.`);
      }
      return undefined;
    },
    explain: ({ category, action }) =>
      category === 'version_control' || action.startsWith('vcs:')
        ? passed(`level ${level.name} has git ${mode}`)
        : notApplicable('no version control'),
  };
}

/** True when an argument at any depth contains a URL or `user@host:path`. The name of the tool is not considered. */
function namesRemote({ texts }: ToolRuleInput): boolean {
  return texts.some(({ text }) => {
    if (text.includes('://')) return true;
    const at = text.indexOf('@');
    return at > 0 && text.indexOf(':', at) > at;
  });
}

function approvalRule({ level }: PreparedPolicy): Rule<ToolRuleInput> {
  const required: ReadonlySet<string> = new Set(level.constraints.requireApproval);
  return {
    id: 'constraint.approval',
    check: ({ name, action }) =>
      required.has(action)
        ? escalate(`Tool "${name}" does ${action}, which needs an approver at level ${level.name}.`)
        : undefined,
    explain: () =>
      required.size === 0
        ? notApplicable(`level ${level.name} requires no approval`)
        : passed(`level ${level.name} requires approval only for ${[...required].join(', ')}`),
  };
}
