import { INVOKE_NAME } from '../agent/code/code-prompt.ts';
import { LIST_TOOLS_NAME, LOAD_TOOL_NAME } from '../agent/code/list-tools.ts';
import { LOAD_RESOURCE_NAME } from '../agent/disclosure/names.ts';
import { GENERATE_TEXT } from '../agent/tools/generate-text.ts';
import { createMemoryTools } from '../agent/tools/memory-tools.ts';
import type { Memory } from '../agent/ports.ts';
import { childTools } from '../agent/tools/children/child-tools.ts';
import { specialistTool } from '../agent/tools/children/specialist-tool.ts';
import { scheduleTools } from '../agent/tools/schedules/schedule-tools.ts';
import { eventTools } from '../agent/tools/events/event-tools.ts';
import { askTools } from '../agent/tools/ask-tool.ts';
import { RUN_TOOL } from '../agent/tools/run/run-descriptor.ts';
import { sendTool } from '../agent/tools/send-tool.ts';
import { FINISH_TOOL_NAME } from '../agent/returns/finish.ts';
import { discoverTool } from '../discovery/discover-tool.ts';
import { FORGE_TOOL } from '../forge/forge-tool.ts';
import { systemClock } from '../lib/clock.ts';
import { TemperError } from '../lib/errors.ts';
import type { Decision, PolicyRequest } from '../policy/types.ts';
import { DROP_TOOL } from '../tempering/lifecycle/drop-tool.ts';
import { CODE_RUN_TOOL } from '../toolbox/code-run.ts';
import { gitTools } from '../toolbox/git/git-tools.ts';
import { remoteGitTools } from '../toolbox/git/remote/remote-tools.ts';
import type { NamedRepositories } from '../toolbox/git/remote/port.ts';
import { SQL_QUERY_NAME } from '../toolbox/sql/sql-query.ts';
import { shellExecTool } from '../toolbox/terminal/shell-exec.ts';
import { createToolbox } from '../toolbox/toolbox.ts';
import { WEB_SEARCH_NAME } from '../toolbox/web/search/web-search.ts';
import type { CallerContext, Tool, ToolDescriptor } from '../tools/contract.ts';

export interface BuiltInToolDeps {
  /** Absolute path. */
  workspace: string;
  /** Absolute paths that no tool may open. */
  protectedFolders?: readonly string[];
  /** Evaluates the policy of the agent for one request. */
  decide: (caller: CallerContext, request: PolicyRequest) => Decision;
  /** The repositories of connections; absent: there is none. */
  repositories?: NamedRepositories | undefined;
}

/** The built-in tools without what they work with: for their descriptors, and for what they refuse by their arguments alone. */
export function toolsWithoutPorts({ workspace, protectedFolders = [], decide, repositories }: BuiltInToolDeps): Tool[] {
  const clock = systemClock;
  const isTainted = (): boolean => false;
  const ignore = (): void => undefined;
  const messages = { decide, isTainted, onAnswer: ignore, clock };
  return [
    ...createToolbox({ workspace, protectedFolders, decide, clock }),
    ...createMemoryTools({ memory: UNUSED_MEMORY, decide, isTainted, onUntrusted: ignore }),
    describedTool(CODE_RUN_TOOL),
    shellExecTool({ programs: () => [], environment: () => [] }),
    ...gitTools(undefined),
    ...remoteGitTools({ workspace, protectedFolders, decide, clock, named: repositories }),
    describedTool(GENERATE_TEXT),
    describedTool(RUN_TOOL),
    sendTool(messages),
    ...askTools(messages),
    ...childTools({ decide }),
    specialistTool(messages),
    ...eventTools(messages),
    ...scheduleTools(messages),
    discoverTool({ search: unreachable }),
    ...[FORGE_TOOL, DROP_TOOL].map(describedTool),
  ];
}

/** Descriptors of the built-in tools, for callers that do not run them. */
export function builtInDescriptors(): ToolDescriptor[] {
  const decide = (): Decision => ({ effect: 'Deny', rule: 'none', reason: 'described only', risk: 'low' });
  return toolsWithoutPorts({ workspace: '/', decide }).map(({ descriptor }) => descriptor);
}

/** Names of the tools of services, also where none is configured. */
const SERVICE_NAMES = [WEB_SEARCH_NAME, SQL_QUERY_NAME];

/** Names that only agents in code mode, or whose tools are not all in each request, have tools for. */
const MODE_NAMES = [INVOKE_NAME, LIST_TOOLS_NAME, LOAD_TOOL_NAME, LOAD_RESOURCE_NAME];

/** Names that forged tools must not use. */
export function builtInNames(): ReadonlySet<string> {
  return new Set([...builtInDescriptors().map(({ name }) => name), ...SERVICE_NAMES, ...MODE_NAMES, FINISH_TOOL_NAME]);
}

/** Names of the built-in tools that need no service of the platform or the user. */
export function ownToolNames(): ReadonlySet<string> {
  return new Set([...builtInNames()].filter((name) => !SERVICE_NAMES.includes(name)));
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
  return builtInDescriptors().map(describedTool);
}

function describedTool(descriptor: ToolDescriptor): Tool {
  return { descriptor, call: unreachable };
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
