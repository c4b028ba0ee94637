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
  ['agent_send', 'agent_message'],
  ['system_time', 'time_now'],
  ['cron_create', 'schedule_create'],
  ['cron_list', 'schedule_list'],
  ['cron_cancel', 'schedule_delete'],
]);

/** What a tool needs besides its grant, or does in another way here. By the names that tools have here. */
export const TOOL_NOTES: ReadonlyMap<string, string> = new Map([
  ['agent_message', 'it waits for the answer, and task_get reads one that comes later'],
  ['shell_exec', 'it runs one program without a shell, where the sandbox has programs; spec.grants.shell names them'],
  ['web_search', 'agents have it where a search service is configured'],
]);

/** Both send to another agent, so a denial of one is a denial of both. */
export const SENDING_TOOLS: ReadonlySet<string> = new Set(['agent_send', 'agent_message']);

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
  [/^web_/, 'NotImported', 'the tools for the web are web_fetch and web_search'],
  [/^apply_patch$/, 'NotImported', 'use file_edit'],
  [/^process_/, 'NotImported', 'a program ends with its call of shell_exec; none stays in the background'],
  [/^(?:shell_|docker_|ssh_)/, 'NotImported', 'programs run with shell_exec, in the sandbox of the agent only'],
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
  [
    /^a2a_/,
    'NotImported',
    'an agent elsewhere is a tool: write a Capability with spec.backend.a2a for it, and grant the name of its tool',
  ],
  [
    /^mcp_/,
    'NotImported',
    'accept the tool with temper mcp accept, or write a Capability with spec.backend.mcp for it, and grant the name that it has here',
  ],
  [/^agent_find$/, 'NotImported', 'use agent_list, which names the agents that this one may reach'],
  [/^agent_/, 'NotImported', 'no tool of this name; see agent_message, agent_list, agent_spawn and agent_kill'],
  [/^task_/, 'NotImported', 'Temper has no queue of tasks that agents share; agent_message gives a task to an agent'],
  [
    /^(?:schedule_|cron_)/,
    'NotImported',
    'no tool of this name; see schedule_create, schedule_list and schedule_delete',
  ],
  [/^event_/, 'NotImported', 'no tool of this name; see event_publish and event_subscribe'],
];

/** Why no tool of this name is granted. */
export function absenceOf(name: string): { result: 'NotImported' | 'Refused'; note: string } {
  const family = ABSENT_FAMILIES.find(([pattern]) => pattern.test(name));
  if (family !== undefined) return { result: family[1], note: family[2] };
  return { result: 'NotImported', note: 'Temper has no tool of this name' };
}

/** Names of OpenFang's tools, to find them in prompts. */
export const OPENFANG_TOOLS: ReadonlySet<string> = new Set([
  ...Object.values(PROFILES).flat(),
  ...RENAMED_TOOLS.keys(),
  'a2a_discover',
  'a2a_send',
  'agent_message',
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
