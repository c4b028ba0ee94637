import { PATTERN_RULES } from '../../policy/patterns/pattern-rules.ts';
import type { ImportContext } from './import-context.ts';
import { importAgent, type ImportedAgent } from './import-agent.ts';
import { parseOpenFangManifest } from './source/manifest-text.ts';

/** Stands for the built-in tools of a version. */
export const CONTEXT: ImportContext = {
  policy: 'openfang',
  patterns: PATTERN_RULES,
  tools: [
    { name: 'file_read', action: 'code:read' },
    { name: 'file_list', action: 'code:read' },
    { name: 'file_write', action: 'code:write' },
    { name: 'memory_get', action: 'memory:read' },
    { name: 'memory_set', action: 'code:write' },
    { name: 'agent_send', action: 'comms:internal' },
    { name: 'agent_message', action: 'comms:internal' },
    { name: 'shell_exec', action: 'code:write' },
    { name: 'web_fetch', action: 'comms:external' },
    { name: 'web_search', action: 'comms:external' },
    { name: 'time_now', action: 'code:read' },
    { name: 'schedule_create', action: 'comms:internal' },
    { name: 'schedule_list', action: 'comms:internal' },
    { name: 'event_publish', action: 'comms:internal' },
    { name: 'event_subscribe', action: 'comms:internal' },
  ],
};

export function importToml(text: string): ImportedAgent {
  const parsed = parseOpenFangManifest(text, 'toml');
  if ('problem' in parsed) throw new Error(parsed.problem);
  return importAgent(parsed.manifest, 'file', CONTEXT);
}
