import type { FieldPath } from '../../../api/findings.ts';
import type { KeyResult } from './import-log.ts';

/** A known key without a field. A `*` segment is any name, a final `**` everything below. */
interface ListedKey {
  readonly key: string;
  readonly result: Extract<KeyResult, 'NotImported' | 'Refused'>;
  readonly note: string;
}

const GATEWAY = 'keys and addresses of providers are in the configuration of the model providers, not in a manifest';
const NO_MONEY = 'Temper handles no money of agents';
const NO_PEERS = 'Temper has no peer-to-peer network';
const ROUTED = 'name models by the points of a message in spec.model.routing';

/** The first entry that matches applies. */
const LISTED_KEYS: readonly ListedKey[] = [
  { key: 'model.api_key_env', result: 'NotImported', note: GATEWAY },
  { key: 'model.base_url', result: 'NotImported', note: GATEWAY },
  { key: 'model.api_key', result: 'Refused', note: `${GATEWAY}; remove the key from the file` },
  { key: 'fallback_models.*.api_key_env', result: 'NotImported', note: GATEWAY },
  { key: 'fallback_models.*.base_url', result: 'NotImported', note: GATEWAY },
  { key: 'pinned_model', result: 'NotImported', note: 'name the model in model.model' },
  {
    key: 'schedule.**',
    result: 'NotImported',
    note: 'the mode of the schedule does not use this key',
  },
  { key: 'routing.frontier_threshold', result: 'NotImported', note: ROUTED },
  { key: 'routing.smart_threshold', result: 'NotImported', note: ROUTED },
  { key: 'routing.balanced_threshold', result: 'NotImported', note: ROUTED },
  { key: 'capabilities.ofp_*', result: 'Refused', note: NO_PEERS },
  { key: 'capabilities.ofp_connect.**', result: 'Refused', note: NO_PEERS },
  { key: 'capabilities.ofp_advertise.**', result: 'Refused', note: NO_PEERS },
  { key: 'capabilities.econ_*', result: 'Refused', note: NO_MONEY },
  { key: 'capabilities.econ_transfer.**', result: 'Refused', note: NO_MONEY },
  { key: 'capabilities.net_listen.**', result: 'Refused', note: 'an agent listens on no port' },
  { key: 'capabilities.llm_query.**', result: 'NotImported', note: 'spec.model names the models of the agent' },
  { key: 'capabilities.llm_max_tokens', result: 'NotImported', note: 'use resources.max_llm_tokens_per_hour' },
  {
    key: 'resources.max_concurrent_tools',
    result: 'NotImported',
    note: 'the calls of one answer run at the same time',
  },
  {
    key: 'resources.max_memory_bytes',
    result: 'NotImported',
    note: 'a limit of WASM modules; see spec.sandbox.resources',
  },
  {
    key: 'resources.max_cpu_time_ms',
    result: 'NotImported',
    note: 'a limit of WASM modules; see spec.sandbox.resources',
  },
  {
    key: 'autonomous.quiet_hours',
    result: 'NotImported',
    note: 'write the two times of the day into spec.schedule.quietHours',
  },
  { key: 'autonomous.max_restarts', result: 'NotImported', note: 'the operator restarts pods with a growing delay' },
  { key: 'autonomous.heartbeat_channel', result: 'Refused', note: 'Temper has no channels; alerts use Prometheus' },
  {
    key: 'autonomous.heartbeat_*',
    result: 'NotImported',
    note: 'the interval is 180 seconds; see the condition Responsive',
  },
  { key: 'exec_policy.safe_bins.**', result: 'NotImported', note: 'spec.grants.shell names the programs' },
  { key: 'exec_policy.allowed_commands.**', result: 'NotImported', note: 'spec.grants.shell names the programs' },
  {
    key: 'exec_policy.timeout_secs',
    result: 'NotImported',
    note: 'a call of shell_exec names its timeoutSeconds, 30 by default; spec.limits.toolTimeout limits every call',
  },
  {
    key: 'exec_policy.max_output_bytes',
    result: 'NotImported',
    note: 'shell_exec returns 64 KiB of each output; spec.limits.outputCharacters limits what the model gets',
  },
  {
    key: 'exec_policy.no_output_timeout_secs',
    result: 'NotImported',
    note: 'a program may be silent until the timeout of its call: a compiler that works prints nothing either',
  },
  { key: 'tools.**', result: 'NotImported', note: 'set the timeout and the defaults of a tool in spec.toolSettings' },
  {
    key: 'skills.**',
    result: 'NotImported',
    note: 'a skill is a Capability of type Skill, or a folder of temper run --skills, which all agents of the namespace find; see temper skill export',
  },
  {
    key: 'skills_disabled',
    result: 'NotImported',
    note: 'name load_tool and load_tool_resource in spec.denyTools, so that the agent loads no skill',
  },
  {
    key: 'mcp_servers.**',
    result: 'NotImported',
    note: 'a server is configured by a user or the platform; accept its tools with temper mcp accept, or write Capabilities with spec.backend.mcp, and grant their names',
  },
  { key: 'allowed_plugins.**', result: 'NotImported', note: 'Temper has no plugins' },
  { key: 'metadata.**', result: 'NotImported', note: 'use metadata.annotations' },
  {
    key: 'workspace',
    result: 'NotImported',
    note: 'each agent has a workspace of its own; spec.sandbox.workspace.files has shared files',
  },
  {
    key: 'state_dir',
    result: 'NotImported',
    note: 'the gateway, or the state folder of a run, has the state of agents',
  },
  { key: 'generate_identity_files', result: 'NotImported', note: 'name the files in spec.prompt.context.files' },
  { key: 'cache_context', result: 'NotImported', note: 'the prompt is read once per message' },
  {
    key: 'max_history_messages',
    result: 'NotImported',
    note: 'a conversation is summarized and trimmed to the context window of the model',
  },
  { key: 'response_format.**', result: 'NotImported', note: 'write the schema of the answer into spec.returns' },
  { key: 'thinking.**', result: 'NotImported', note: 'a setting of the model provider' },
  { key: 'context_injection.**', result: 'NotImported', note: 'write the text into spec.prompt.system' },
  { key: 'inherit_parent_context', result: 'NotImported', note: 'a setting of workflows, which Temper does not have' },
  { key: 'is_hand', result: 'Refused', note: 'an agent does not change itself or install packages' },
];

export function listedKey(path: FieldPath): ListedKey | undefined {
  return LISTED_KEYS.find(({ key }) => matches(key.split('.'), path.map(String)));
}

/** The names of known keys beside the path, for the correction of a mistyped one. */
export function knownSiblings(path: FieldPath): string[] {
  const parent = path.slice(0, -1).map(String);
  return [...LISTED_KEYS.map(({ key }) => key), ...MAPPED_KEYS]
    .map((key) => key.split('.'))
    .filter((segments) => segments.length > parent.length && matches(segments.slice(0, parent.length), parent))
    .map((segments) => segments[parent.length] ?? '')
    .filter((name) => name !== '' && !name.includes('*'));
}

/** The keys that the other files of this folder import. */
const MAPPED_KEYS: readonly string[] = [
  'name',
  'version',
  'description',
  'author',
  'module',
  'tags',
  'profile',
  'model.provider',
  'model.model',
  'model.max_tokens',
  'model.temperature',
  'model.system_prompt',
  'fallback_models.*.provider',
  'fallback_models.*.model',
  'routing.enabled',
  'routing.simple_model',
  'routing.medium_model',
  'routing.complex_model',
  'schedule.mode',
  'schedule.interval_seconds',
  'schedule.cron',
  'schedule.periodic.cron',
  'schedule.continuous.check_interval_secs',
  'schedule.proactive.conditions',
  'schedule.triggers.*.event',
  'schedule.triggers.*.pattern',
  'resources.max_llm_tokens_per_hour',
  'resources.max_tokens_per_hour',
  'resources.max_tool_calls_per_minute',
  'resources.max_network_bytes_per_hour',
  'resources.max_cost_per_hour_usd',
  'resources.max_cost_per_hour',
  'resources.max_cost_per_day_usd',
  'resources.max_cost_per_month_usd',
  'resources.max_iterations',
  'capabilities.tools',
  'capabilities.network',
  'capabilities.memory_read',
  'capabilities.memory_write',
  'capabilities.agent_message',
  'capabilities.agent_spawn',
  'capabilities.agent_kill',
  'capabilities.shell',
  'capabilities.env_read',
  'autonomous.max_iterations',
  'autonomous.max_actions_per_cycle',
  'autonomous.idle_timeout_seconds',
  'autonomous.approval_required_for',
  'exec_policy.mode',
  'exec_policy.allow_shell',
  'exec_policy.allow_network',
  'exec_policy.allow_file_write',
  'exec_policy.allowed_env_vars',
  'exec_policy.shell_env_passthrough',
  'tool_allowlist',
  'tool_blocklist',
];

/** Keys of OpenFang's documentation that its program does not read. */
const IGNORED_BY_OPENFANG: readonly string[] = [
  'schedule.mode',
  'schedule.interval_seconds',
  'schedule.cron',
  'schedule.triggers.**',
  'resources.max_tokens_per_hour',
  'resources.max_cost_per_hour',
  'resources.max_iterations',
  'resources.max_concurrent_tools',
  'capabilities.agent_kill.**',
  'routing.enabled',
  'routing.frontier_threshold',
  'routing.smart_threshold',
  'routing.balanced_threshold',
  'autonomous.approval_required_for.**',
  'autonomous.max_actions_per_cycle',
  'autonomous.idle_timeout_seconds',
  'exec_policy.allow_shell',
  'exec_policy.allow_network',
  'exec_policy.allow_file_write',
];

export function isIgnoredByOpenFang(path: FieldPath): boolean {
  return IGNORED_BY_OPENFANG.some((key) => matches(key.split('.'), path.map(String)));
}

function matches(pattern: readonly string[], path: readonly string[]): boolean {
  const isOpen = pattern.at(-1) === '**';
  const segments = isOpen ? pattern.slice(0, -1) : pattern;
  if (isOpen ? path.length < segments.length : path.length !== segments.length) return false;
  return segments.every((segment, index) => {
    const name = path[index] ?? '';
    return segment.endsWith('*') ? name.startsWith(segment.slice(0, -1)) : segment === name;
  });
}
