/** Named selections of tools, as data. This file imports nothing, so every module can use it without cost. */

/** The tools of each profile, as patterns. A profile only narrows the grants of an agent; it grants nothing. */
export const TOOL_PROFILES = {
  Minimal: ['file_read', 'file_list'],
  Coding: [
    'file_read',
    'file_write',
    'file_edit',
    'file_delete',
    'file_list',
    'text_search',
    'code_run',
    'shell_exec',
    'git_*',
    'web_fetch',
  ],
  Research: ['file_read', 'file_write', 'text_search', 'web_fetch', 'web_search'],
  Messaging: ['agent_send', 'agent_message', 'task_get', 'agent_list', 'memory_*'],
  Automation: [
    'file_read',
    'file_write',
    'file_list',
    'text_search',
    'shell_exec',
    'web_fetch',
    'web_search',
    'agent_send',
    'agent_message',
    'task_get',
    'agent_list',
    'memory_*',
  ],
  Full: ['*'],
} as const satisfies Record<string, readonly string[]>;

export type ToolProfileName = keyof typeof TOOL_PROFILES;

export const TOOL_PROFILE_NAMES = Object.keys(TOOL_PROFILES) as ToolProfileName[];

/** What an agent may do at all; tightest first. */
export const AGENT_MODES = ['Observe', 'Assist', 'Full'] as const;

/** The tools of mode Assist: they read, and change nothing. */
export const ASSIST_TOOLS: readonly string[] = [
  'file_read',
  'file_list',
  'text_search',
  'memory_get',
  'memory_search',
  'agent_list',
];
