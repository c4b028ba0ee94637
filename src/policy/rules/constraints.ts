import { isJsonObject } from '../../lib/json.ts';
import type { Json } from '../../lib/json.ts';
import { describeLimit, levelHint } from '../constraints/constrained-level.ts';
import { namesGitRemote } from '../detect/git-remotes.ts';
import { hostViolation, networkRules } from './network.ts';
import { commandLine, programOf } from '../patterns/command-lines.ts';
import type { PreparedPolicy } from '../prepare.ts';
import type { ToolRuleInput } from './rule-inputs.ts';
import { deny, escalate, notApplicable, passed } from './rule.ts';
import type { Rule, RuleViolation } from './rule.ts';

/** The constraints of level, policy and agent, in this order: network, terminal, git, approval. The first violation decides. */
export function constraintRules(prepared: PreparedPolicy): Rule<ToolRuleInput>[] {
  return [networkRule(prepared), ...terminalRules(prepared), gitRule(prepared), approvalRule(prepared)];
}

/** Members that contain the address a web tool connects to. */
const ADDRESS_MEMBERS = ['url', 'uri', 'href', 'endpoint'] as const;

function usesNetwork({ category, does }: ToolRuleInput): boolean {
  return category === 'web' || does.all.includes('comms:external');
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
          `Tool "${request.name}" needs the network, which ${level.limits.network.by} does not allow${levelHint(level, 'network', 'level restricted allows it')}.`,
        );
      }
      return request.arguments === undefined ? undefined : addressViolation(connection, request.arguments);
    },
    explain: (request) =>
      usesNetwork(request)
        ? passed(describeLimit(level, 'network'))
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
          ? deny(
              `Tool "${name}" is a terminal, which ${level.limits.terminal.by} does not allow${levelHint(level, 'terminal', 'level standard allows it')}.`,
            )
          : undefined,
      explain: ({ category }) =>
        category === 'terminal' ? passed(describeLimit(level, 'terminal')) : notApplicable('no terminal'),
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

function commandViolation(prepared: PreparedPolicy, request: ToolRuleInput): RuleViolation | undefined {
  const { level, shell } = prepared;
  if (shell.size === 0) return deny(`Tool "${request.name}" runs commands, and grants.shell allows nothing.`);
  if (request.arguments === undefined) return undefined;
  if (isProgramTool(request)) return programViolation(prepared, request.arguments);
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

/** The built-in terminal starts one program with a list of arguments, and no shell reads them. */
function isProgramTool({ name, forged }: ToolRuleInput): boolean {
  return name === 'shell_exec' && !forged;
}

function programViolation(prepared: PreparedPolicy, input: Json): RuleViolation | undefined {
  const words = wordsOf(input);
  if (words === undefined) return deny('The program needs its name as "command" and its arguments as a list of texts.');
  const shell = usableShell(prepared);
  const line = commandLine(words);
  if (shell.has(line)) return undefined;
  if (prepared.shell.has(line)) {
    return deny(
      `The command ${line.slice(0, 200)} is granted only by a pattern that names no program, and ${describeLimit(prepared.level, 'terminal')}; name the program in grants.shell.`,
    );
  }
  return deny(
    `The command ${line.slice(0, 200)} is not granted: grants.shell allows ${shell.describe()}, each for a whole command line.`,
  );
}

/** At RestrictedCommands only patterns that name their program count. */
function usableShell({ level, shell }: PreparedPolicy): PreparedPolicy['shell'] {
  return level.constraints.terminal === 'Full' ? shell : shell.filter(({ text }) => programOf(text) !== undefined);
}

/** The programs that may be started, by the agent or by a program; `any` with a star in place of a name. */
export function grantedPrograms(prepared: PreparedPolicy): readonly string[] | 'any' {
  if (prepared.level.constraints.terminal === 'None') return [];
  const names = usableShell(prepared).patterns.map(({ text }) => programOf(text));
  const named = names.filter((name) => name !== undefined);
  return named.length < names.length ? 'any' : [...new Set(named)];
}

function wordsOf(input: Json): string[] | undefined {
  if (!isJsonObject(input) || typeof input.command !== 'string') return undefined;
  const words = input.args ?? [];
  if (!Array.isArray(words) || !words.every((word) => typeof word === 'string')) return undefined;
  return [input.command, ...words];
}

function commandOf(input: Json): string | undefined {
  const [command = '', ...words] = wordsOf(input) ?? [];
  return wordsOf(input) === undefined ? undefined : [command.trim(), ...words].join(' ');
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
      if (mode === 'Full' || !isVersionControl(request)) return undefined;
      if (request.does.all.includes('vcs:push')) {
        return deny(
          `Tool "${request.name}" pushes, and ${describeLimit(level, 'git')}${levelHint(level, 'git', 'level standard may push')}.`,
        );
      }
      if (mode === 'LocalOnly' && namesRemote(request)) {
        return deny(
          `Tool "${request.name}" names a remote, and ${describeLimit(level, 'git')}; write a path with ./ before it, and a revision with a dot in full, such as refs/tags/1.2:file.`,
        );
      }
      return undefined;
    },
    explain: (request) =>
      isVersionControl(request) ? passed(describeLimit(level, 'git')) : notApplicable('no version control'),
  };
}

function isVersionControl({ category, does }: ToolRuleInput): boolean {
  return category === 'version_control' || does.all.some((action) => action.startsWith('vcs:'));
}

/**
 * True when an argument at any depth, names of members included, names a remote. The name of the tool is not considered, but for the message
 * of a commit, which is a text.
 */
function namesRemote({ name: tool, forged, texts }: ToolRuleInput): boolean {
  return texts.some(
    ({ name, text }) => !(tool === 'git_commit' && !forged && name === 'message') && namesGitRemote(text),
  );
}

function approvalRule({ level }: PreparedPolicy): Rule<ToolRuleInput> {
  const { approvals } = level;
  return {
    id: 'constraint.approval',
    check: ({ name, does }) => {
      const waits = approvals.size === 0 ? undefined : does.all.find((action) => approvals.has(action));
      return waits === undefined
        ? undefined
        : escalate(`Tool "${name}" does ${waits}, which needs an approver: ${approvals.get(waits)} requires it.`);
    },
    explain: () =>
      approvals.size === 0
        ? notApplicable(`neither level ${level.name} nor a constraint requires approval`)
        : passed(`approval is required only for ${[...approvals.keys()].join(', ')}`),
  };
}
