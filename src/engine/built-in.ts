import { INVOKE_NAME } from '../agent/code/code-prompt.ts';
import { LIST_TOOLS_NAME, LOAD_TOOL_NAME } from '../agent/code/list-tools.ts';
import { LOAD_RESOURCE_NAME } from '../agent/disclosure/names.ts';
import { GENERATE_TEXT } from '../agent/tools/generate-text.ts';
import { createMemoryTools } from '../agent/tools/memory-tools.ts';
import type { Memory } from '../agent/ports.ts';
import { CHILD_TOOL_DESCRIPTORS } from '../agent/tools/children/child-tools.ts';
import { SCHEDULE_TOOL_DESCRIPTORS } from '../agent/tools/schedules/schedule-tools.ts';
import { EVENT_TOOL_DESCRIPTORS } from '../agent/tools/events/event-tools.ts';
import { ASK_TOOL, TASK_TOOL } from '../agent/tools/ask-tool.ts';
import { RUN_TOOL } from '../agent/tools/run/run-descriptor.ts';
import { SEND_TOOL } from '../agent/tools/send-tool.ts';
import { FINISH_TOOL_NAME } from '../agent/returns/finish.ts';
import { DISCOVER_TOOL } from '../discovery/discover-tool.ts';
import { FORGE_TOOL } from '../forge/forge-tool.ts';
import { systemClock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Decision } from '../policy/types.ts';
import { DROP_TOOL } from '../tempering/lifecycle/drop-tool.ts';
import { createToolbox } from '../toolbox/toolbox.ts';
import type { Tool, ToolDescriptor } from '../tools/contract.ts';

/** Descriptors of the built-in tools, for callers that do not run them. */
export function builtInDescriptors(): ToolDescriptor[] {
  const decide = (): Decision => ({ effect: 'Deny', rule: 'none', reason: 'described only', risk: 'low' });
  const tools = [
    ...createToolbox({ workspace: '/', decide, clock: systemClock }),
    ...createMemoryTools({ memory: UNUSED_MEMORY, decide, isTainted: () => false, onUntrusted: () => undefined }),
  ];
  const messages = [SEND_TOOL, ASK_TOOL, TASK_TOOL, ...CHILD_TOOL_DESCRIPTORS];
  const own = [...EVENT_TOOL_DESCRIPTORS, ...SCHEDULE_TOOL_DESCRIPTORS];
  return [
    ...tools.map((tool) => tool.descriptor),
    GENERATE_TEXT,
    RUN_TOOL,
    ...messages,
    ...own,
    DISCOVER_TOOL,
    FORGE_TOOL,
    DROP_TOOL,
  ];
}

/** Names that only agents in code mode, or whose tools are not all in each request, have tools for. */
const MODE_NAMES = [INVOKE_NAME, LIST_TOOLS_NAME, LOAD_TOOL_NAME, LOAD_RESOURCE_NAME];

/** Names that forged tools must not use. */
export function builtInNames(): ReadonlySet<string> {
  return new Set([...builtInDescriptors().map(({ name }) => name), ...MODE_NAMES, FINISH_TOOL_NAME]);
}

const FOR_MODEL_ONLY: ReadonlySet<string> = new Set([
  ...MODE_NAMES,
  FINISH_TOOL_NAME,
  FORGE_TOOL.name,
  DROP_TOOL.name,
  RUN_TOOL.name,
]);

/** Tools that work for the model of an agent, inside of a message: what they make is recorded as the work of that model. */
export function isForModelOnly(name: string): boolean {
  return FOR_MODEL_ONLY.has(name);
}

/** The built-in tools for a view of descriptors. */
export function describedBuiltInTools(): Tool[] {
  return builtInDescriptors().map((descriptor) => ({ descriptor, call: unreachable }));
}

const unreachable = (): Promise<never> =>
  Promise.reject(new TemperError('TEMPER_INTERNAL', 'a tool descriptor was called'));
const UNUSED_MEMORY: Memory = {
  get: unreachable,
  set: unreachable,
  delete: unreachable,
  list: unreachable,
  search: unreachable,
};
