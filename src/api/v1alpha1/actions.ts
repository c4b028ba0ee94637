/** Action types and tool categories as data. Nothing is imported here, so that every room can use it for free. */

/** What a tool belongs to. Access levels open categories. */
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

/** The built-in action types by their category; written `category:action`. */
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

/** The categories a rule may name alone, meaning all their actions. */
export const ACTION_CATEGORIES: readonly string[] = Object.keys(ACTIONS_BY_CATEGORY);

const REGISTERED: ReadonlySet<string> = new Set(ACTION_TYPES);

export function isActionType(text: string): boolean {
  return REGISTERED.has(text);
}

/**
 * The action types an entry of a rule stands for: itself, all of its category, or none when nothing of that name is registered.
 * An entry that stands for nothing is a mistake to report, never a rule that matches nothing.
 */
export function expandActions(entry: string): readonly string[] {
  if (REGISTERED.has(entry)) return [entry];
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

/** The access levels every policy knows, lowest first. */
export const BUILTIN_LEVELS = ['sandboxed', 'restricted', 'standard', 'elevated'] as const;
export type BuiltinLevel = (typeof BUILTIN_LEVELS)[number];

/** What counts where a policy names no level. Elevated needs a person, so it is never the silent ceiling. */
export const DEFAULT_LEVELS = { initial: 'sandboxed', ceiling: 'standard' } as const;
