import { FORGE_MODES, TOOL_APIS } from '../api/v1alpha1/actions.ts';
import { TemperError } from '../lib/errors.ts';
import { isJsonObject, member, type Json } from '../lib/json.ts';
import type { CallOptions } from '../lib/call-options.ts';
import type { Decider, Decision, ForgeLimits } from '../policy/types.ts';
import type { HostCalls } from '../sandbox/port.ts';
import type { Tool } from '../tools/contract.ts';
import { createToolView } from '../tools/view.ts';
import type { EventSink } from '../tools/events.ts';
import { FORGE_TOOL_NAME } from '../tools/forge-test-call.ts';
import type { ForgeContext, ForgeSource } from './forge.ts';
import { normalizeExceptSource } from './normalization/normalize-request.ts';
import { splitReference, TOOL_REFERENCE } from './request.ts';

/** Limits for a tool that is checked without an agent and a policy: everything is allowed, within what keeps the machine usable. */
const UNLIMITED: ForgeLimits = {
  allowed: true,
  modes: FORGE_MODES,
  apis: TOOL_APIS,
  domains: ['*'],
  durationMilliseconds: 60_000,
  memoryBytes: 536_870_912,
  sessionTools: 1_000_000,
  agentTools: 1_000_000,
  minTestCases: 1,
};

/**
 * The forge context for a tool that is checked outside any agent. The host and other tools are unreachable: only the
 * fixtures of a test case answer calls to them. Tools that the steps name are assumed to exist, with side effects.
 */
export function standaloneContext(source: ForgeSource, events: EventSink, op: CallOptions): ForgeContext {
  return {
    decider: allowAll,
    view: createToolView(assumedTools(source)),
    invoke: async (reference) => {
      const { name: tool } = splitReference(reference);
      const message = `"${tool}" cannot be called here; ${FIXTURE}`;
      return { ok: false, tool, error: { code: 'TEMPER_TOOL_NOT_FOUND', message }, milliseconds: 0 };
    },
    events,
    hostCalls: () => unreachableHost,
    op,
  };
}

const FIXTURE = 'answer it with a fixture in the test case, or run the tool in an agent';

const allow: Decision = { effect: 'Allow', rule: 'none', reason: 'There is no policy here.', risk: 'low' };
const allowAll: Decider = {
  level: 'none',
  decide: () => allow,
  explain: () => ({ ...allow, trace: [] }),
  forgeLimits: UNLIMITED,
  programs: [],
};

const unreachableHost: HostCalls = {
  call(api) {
    return Promise.reject(
      new TemperError(
        'TEMPER_HOST_CALL_DENIED',
        `${api} is not available here; ${FIXTURE} ({"tool":"${fixtureName(api)}","output":…})`,
      ),
    );
  },
};

function fixtureName(api: string): string {
  return api === 'fs.readFile' ? 'fs_read_file' : api;
}

function assumedTools(source: ForgeSource): Tool[] {
  const whole = 'request' in source ? normalizeExceptSource(source.request) : source.artifact;
  const steps = member(member(whole, 'implementation'), 'steps');
  const references = (Array.isArray(steps) ? steps : [])
    .map((step): Json | undefined => (isJsonObject(step) ? step['tool'] : undefined))
    .filter((tool): tool is string => typeof tool === 'string' && TOOL_REFERENCE.test(tool));
  const own = member(whole, 'name');
  const tools = new Map<string, Tool>();
  for (const reference of references) {
    const { name, digest } = splitReference(reference);
    if (name !== own && name !== FORGE_TOOL_NAME) tools.set(name, assumedTool(name, digest));
  }
  return [...tools.values()];
}

function assumedTool(name: string, digest: string | undefined): Tool {
  return {
    descriptor: {
      name,
      description: 'not known here',
      inputSchema: {},
      category: 'other',
      action: 'code:read',
      sideEffects: true,
      locality: 'Brokered',
      ...(digest === undefined ? {} : { forged: { digest: digest as `sha256:${string}`, tier: 'Shared' } }),
    },
    call: () => Promise.reject(new TemperError('TEMPER_TOOL_NOT_FOUND', `"${name}" cannot be called here`)),
  };
}
