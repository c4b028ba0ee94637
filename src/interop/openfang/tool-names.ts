import type { ActionType } from '../../policy/types.ts';

/** A built-in tool of Temper. */
export interface LocalTool {
  readonly name: string;
  readonly action: ActionType;
}

/** Tools of OpenFang that have another name here. */
export const RENAMED_TOOLS: ReadonlyMap<string, string> = new Map([
  ['memory_store', 'memory_set'],
  ['memory_recall', 'memory_get'],
  ['agent_message', 'agent_send'],
  ['system_time', 'time_now'],
  ['cron_create', 'schedule_create'],
  ['cron_list', 'schedule_list'],
  ['cron_cancel', 'schedule_delete'],
]);

/** The tools of each named profile, as OpenFang expands them. */
export const PROFILES: Readonly<Record<string, readonly string[]>> = {
  minimal: ['file_read', 'file_list'],
  coding: ['file_read', 'file_write', 'file_list', 'shell_exec', 'web_fetch'],
  research: ['web_fetch', 'web_search', 'file_read', 'file_write'],
  messaging: ['agent_send', 'agent_list', 'memory_store', 'memory_recall'],
  automation: [
    'file_read',
    'file_write',
    'file_list',
    'shell_exec',
    'web_fetch',
    'web_search',
    'agent_send',
    'agent_list',
    'memory_store',
    'memory_recall',
  ],
  full: ['*'],
  custom: ['*'],
};

/** Why a tool of OpenFang does not exist here. The first family that matches decides. */
const ABSENT_FAMILIES: readonly (readonly [name: RegExp, result: 'NotImported' | 'Refused', why: string])[] = [
  [/^web_/, 'NotImported', 'not imported yet: no tool of this name. The agent can forge one with spec.forge'],
  [/^(?:shell_|docker_|process_|apply_patch$|ssh_)/, 'NotImported', 'not imported yet: no tool starts programs'],
  [/^browser_/, 'NotImported', 'no tool controls a browser'],
  [
    /^(?:channel_|telegram_|discord_|slack_|email_)/,
    'Refused',
    'Temper has no channels; a user or a program sends messages',
  ],
  [
    /^(?:hand_|skill_|self_|prompt_|improve)/,
    'Refused',
    'an agent does not change itself or install packages; it forges tools with spec.forge',
  ],
  [/^(?:ofp_|peer_)/, 'Refused', 'Temper has no peer-to-peer network'],
  [/^(?:econ_|payment_)/, 'Refused', 'Temper handles no money of agents'],
  [/^a2a_/, 'NotImported', 'not imported yet: no tool calls agents of other systems'],
  [/^mcp_/, 'NotImported', 'not imported yet: no tools of MCP servers'],
  [/^agent_/, 'NotImported', 'not imported yet: no tool of this name'],
  [/^(?:schedule_|cron_|event_|task_)/, 'NotImported', 'not imported yet: no tool of this name'],
];

export function absenceOf(name: string): { result: 'NotImported' | 'Refused'; note: string } {
  const family = ABSENT_FAMILIES.find(([pattern]) => pattern.test(name));
  if (family !== undefined) return { result: family[1], note: family[2] };
  return { result: 'NotImported', note: 'Temper has no tool of this name' };
}

/** Names of OpenFang's tools, to find them in prompts. */
export const OPENFANG_TOOLS: ReadonlySet<string> = new Set([
  ...Object.values(PROFILES).flat(),
  ...RENAMED_TOOLS.keys(),
  'agent_spawn',
  'agent_kill',
  'agent_find',
  'apply_patch',
  'browser_navigate',
  'browser_click',
  'browser_type',
  'browser_read_page',
  'browser_screenshot',
  'browser_close',
  'channel_send',
  'cron_create',
  'cron_list',
  'cron_cancel',
  'docker_exec',
  'event_publish',
  'image_analyze',
  'image_generate',
  'knowledge_add_entity',
  'knowledge_add_relation',
  'knowledge_query',
  'location_get',
  'process_start',
  'process_poll',
  'process_kill',
  'schedule_create',
  'schedule_list',
  'schedule_delete',
  'task_post',
  'task_claim',
  'task_complete',
  'task_list',
]);
