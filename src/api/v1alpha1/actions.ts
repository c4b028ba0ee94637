/** Action types, tool categories, host functions and forge modes as data. This file imports nothing, so every module can use it without cost. */

/** Every tool has one category. An access level allows a set of categories. */
export const TOOL_CATEGORIES = [
  'file_system',
  'code_execution',
  'version_control',
  'web',
  'database',
  'terminal',
  'design',
  'communication',
  'analytics',
  'deployment',
  'memory',
  'mcp',
  'other',
] as const;

export type ToolCategoryName = (typeof TOOL_CATEGORIES)[number];

const ISOLATED_CATEGORIES: readonly ToolCategoryName[] = ['file_system', 'code_execution', 'version_control'];

/** The tool categories that each built-in level opens. */
export const LEVEL_CATEGORIES = {
  sandboxed: ISOLATED_CATEGORIES,
  restricted: [...ISOLATED_CATEGORIES, 'web'],
  standard: [...ISOLATED_CATEGORIES, 'web', 'terminal', 'analytics'],
  elevated: TOOL_CATEGORIES,
} as const satisfies Record<string, readonly ToolCategoryName[]>;

/**
 * The categories of tools that reach only what the agent is granted key by key or agent by agent. They are open at every built-in level
 * when `grants.memory` or `grants.messages` has an entry.
 */
export const GRANTABLE_CATEGORIES: ReadonlySet<ToolCategoryName> = new Set<ToolCategoryName>([
  'memory',
  'communication',
]);

/** Host functions that a forged tool may declare. Without `clock` and `random`, time and randomness throw in the tool. */
export const TOOL_APIS = ['fetch', 'fs.readFile', 'crypto', 'clock', 'random'] as const;

export const FORGE_MODES = ['Compose', 'Sandbox'] as const;

/** The built-in action types by category; written `category:action`. */
const ACTIONS_BY_CATEGORY = {
  code: ['read', 'write', 'create', 'delete', 'refactor'],
  test: ['write', 'run'],
  docs: ['write'],
  vcs: ['read', 'commit', 'push', 'branch'],
  deploy: ['staging', 'production'],
  comms: ['internal', 'external'],
  budget: ['spend', 'exceed'],
  org: ['hire', 'fire', 'promote'],
  db: ['query', 'mutate', 'admin'],
  arch: ['decide'],
  memory: ['read'],
} as const satisfies Record<string, readonly string[]>;

/** All 26 built-in action types, in table order. */
export const ACTION_TYPES: readonly string[] = Object.entries(ACTIONS_BY_CATEGORY).flatMap(([category, actions]) =>
  actions.map((action) => `${category}:${action}`),
);

/** The action categories. A rule that names only a category covers all actions of the category. */
export const ACTION_CATEGORIES: readonly string[] = Object.keys(ACTIONS_BY_CATEGORY);

const REGISTERED_ACTIONS: ReadonlySet<string> = new Set(ACTION_TYPES);

export function isActionType(text: string): boolean {
  return REGISTERED_ACTIONS.has(text);
}

/** A category of custom actions: a domain, a slash and a name. A misspelt built-in one has no slash. */
const CUSTOM_CATEGORY = '[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?/[a-z][a-z0-9_-]{0,30}';
/** The form of custom action types, and of entries of rules, as patterns. */
export const CUSTOM_ACTION_PATTERN = `${CUSTOM_CATEGORY}:[a-z][a-z0-9_-]{0,30}`;
export const CUSTOM_ENTRY_PATTERN = `${CUSTOM_CATEGORY}(:[a-z][a-z0-9_-]{0,30})?`;
/** Of an action type and of an entry. */
export const MAX_ACTION_LENGTH = 128;

const CUSTOM_ACTION = new RegExp(`^${CUSTOM_ACTION_PATTERN}$`);

const CUSTOM_ENTRY = new RegExp(`^${CUSTOM_ENTRY_PATTERN}$`);

/** Whether the text has the form of a custom action type, or of the category of some. */
export function isCustomEntry(text: string): boolean {
  return text.length <= MAX_ACTION_LENGTH && CUSTOM_ENTRY.test(text);
}

/** Whether the text has the form of a custom action type. A TrustPolicy registers each of them. */
export function isCustomAction(text: string): boolean {
  return text.length <= MAX_ACTION_LENGTH && CUSTOM_ACTION.test(text);
}

/** The action types by risk, the highest first. */
const ACTIONS_BY_RISK = {
  critical: ['deploy:production', 'db:admin', 'org:fire'],
  high: ['deploy:staging', 'db:mutate', 'code:delete', 'vcs:push', 'comms:external', 'budget:exceed'],
  medium: [
    'code:create',
    'code:write',
    'code:refactor',
    'vcs:commit',
    'arch:decide',
    'org:hire',
    'org:promote',
    'budget:spend',
  ],
  low: [
    'code:read',
    'test:write',
    'test:run',
    'docs:write',
    'vcs:read',
    'vcs:branch',
    'comms:internal',
    'db:query',
    'memory:read',
  ],
} as const satisfies Record<string, readonly string[]>;

/** Lowest first. */
export const RISKS = ['low', 'medium', 'high', 'critical'] as const;
export type RiskName = (typeof RISKS)[number];

const RISK_OF: ReadonlyMap<string, RiskName> = new Map(
  RISKS.flatMap((risk) => ACTIONS_BY_RISK[risk].map((action): [string, RiskName] => [action, risk])),
);

/** The risk of a built-in action type. */
export function builtInRisk(action: string): RiskName | undefined {
  return RISK_OF.get(action);
}

/** The built-in action type whose rules apply to a custom one that names none: the tool may send anything anywhere. */
export const DEFAULT_BASE_ACTION = 'comms:external';
/** The risk of a custom action type that names none, unless that of its base is higher. */
export const DEFAULT_CUSTOM_RISK: RiskName = 'high';

/**
 * The action types that an entry of a rule covers: the named action type, or all action types of the named category. `custom`: those
 * that the policy registers. Empty when the entry names neither. The caller reports such an entry as an error; it is never a rule that
 * matches nothing.
 */
export function expandActions(entry: string, custom: readonly string[] = []): readonly string[] {
  if (REGISTERED_ACTIONS.has(entry) || custom.includes(entry)) return [entry];
  return [...ACTION_TYPES, ...custom].filter((type) => type.startsWith(`${entry}:`));
}

/** The action types of a tool that declares only its category. */
export const DEFAULT_ACTION: Readonly<Record<ToolCategoryName, string>> = {
  file_system: 'code:write',
  code_execution: 'code:write',
  version_control: 'vcs:commit',
  web: 'comms:external',
  database: 'db:query',
  terminal: 'code:write',
  design: 'docs:write',
  communication: 'comms:internal',
  analytics: 'code:read',
  deployment: 'deploy:staging',
  memory: 'memory:read',
  mcp: 'code:write',
  other: 'comms:external',
};

/** What a policy may treat as untrusted content: messages by their source, never those of users, files of the workspace, and rows of databases. */
export const UNTRUSTED_SOURCES = ['Agent', 'Reply', 'Trigger', 'Peer', 'File', 'Database'] as const;
/** Texts from outside the namespace. */
export const DEFAULT_UNTRUSTED_SOURCES: readonly string[] = ['Trigger', 'Peer'];

/** What a policy may treat as private data of the session that reads it. */
export const PRIVATE_SOURCES = ['File', 'Memory', 'Database', 'Mcp', 'Agent', 'Reply'] as const;
/** What agents keep, and what they read in databases. */
export const DEFAULT_PRIVATE_SOURCES: readonly string[] = ['File', 'Memory', 'Database'];

/** What a policy can deny to a session with untrusted content. */
export const TAINTED_OPERATIONS = ['forge', 'promote', 'message', 'network', 'spawn', 'memory', 'schedule'] as const;

/** The access levels that exist in every policy, lowest first. */
export const BUILTIN_LEVELS = ['sandboxed', 'restricted', 'standard', 'elevated'] as const;
export type BuiltinLevel = (typeof BUILTIN_LEVELS)[number];

/** The levels of a policy that names none. The default ceiling is not elevated, because elevated needs an approver. */
export const DEFAULT_LEVELS = { initial: 'sandboxed', ceiling: 'standard' } as const;
