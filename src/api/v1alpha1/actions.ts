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

/**
 * The action types that an entry of a rule covers: the named action type, or all action types of the named category.
 * Empty when the entry names neither. The caller reports such an entry as an error; it is never a rule that matches nothing.
 */
export function expandActions(entry: string): readonly string[] {
  if (REGISTERED_ACTIONS.has(entry)) return [entry];
  if (!Object.hasOwn(ACTIONS_BY_CATEGORY, entry)) return [];
  return ACTION_TYPES.filter((type) => type.startsWith(`${entry}:`));
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

/** What a policy may treat as untrusted content: messages by their source, never those of users, and files of the workspace. */
export const UNTRUSTED_SOURCES = ['Agent', 'Reply', 'Trigger', 'Peer', 'File'] as const;
/** Texts from outside the namespace. */
export const DEFAULT_UNTRUSTED_SOURCES: readonly string[] = ['Trigger', 'Peer'];

/** What a policy can deny to a session with untrusted content. */
export const TAINTED_OPERATIONS = ['forge', 'promote', 'message', 'network', 'spawn', 'memory', 'schedule'] as const;

/** The access levels that exist in every policy, lowest first. */
export const BUILTIN_LEVELS = ['sandboxed', 'restricted', 'standard', 'elevated'] as const;
export type BuiltinLevel = (typeof BUILTIN_LEVELS)[number];

/** The levels of a policy that names none. The default ceiling is not elevated, because elevated needs an approver. */
export const DEFAULT_LEVELS = { initial: 'sandboxed', ceiling: 'standard' } as const;
