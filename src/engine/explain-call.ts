import { memoryCallRequest } from '../agent/tools/memory-access.ts';
import { ASK_TOOL } from '../agent/tools/ask-tool.ts';
import { messageRequest, SEND_TOOL } from '../agent/tools/send-tool.ts';
import { isTemperError } from '../lib/errors.ts';
import type { Json } from '../lib/json.ts';
import { validateTarget } from '../net/targets.ts';
import type { Decider, ExplainedDecision, PolicyRequest } from '../policy/types.ts';
import { type FileToolName, fileRequest } from '../toolbox/file-access.ts';
import { writtenPath } from '../toolbox/path-resolution.ts';
import type { ToolDescriptor } from '../tools/contract.ts';
import { assertInput } from '../tools/input-check.ts';
import type { SchemaCompiler } from '../tools/json-schema/compiler.ts';

export interface ExplainCallDeps {
  decider: Decider;
  /** The built-in tools, whose input schemas and requests are known. */
  tools: readonly ToolDescriptor[];
  schemas: SchemaCompiler;
  /** Absolute path of the workspace, as in the snapshot of the decider. */
  workspace: string;
}

type Trace = ExplainedDecision['trace'];

/**
 * Explains what a real call would do: the decision of the policy, and the checks that follow it in a call, made by the same code: the
 * input schema, the request of a built-in tool for its file, key or receiver, the folder rule of file tools, and the refusal of hosts
 * that are not public. Executes nothing and resolves neither links nor names; both may still refuse the call.
 */
export function explainCall(deps: ExplainCallDeps, request: PolicyRequest): ExplainedDecision {
  const { decider, workspace } = deps;
  if (request.kind === 'Tool' && request.arguments !== undefined) {
    return explainToolCall(deps, { ...request, arguments: request.arguments });
  }
  const explained = decider.explain(request);
  if (request.kind === 'File') {
    return refine(explained, 'workspace', 'the path is below the workspace', () =>
      writtenPath(request.path, workspace, [workspace]),
    );
  }
  if (request.kind !== 'Network') return explained;
  return refine(explained, 'public-host', 'the host is not known to be internal', () =>
    validateTarget(urlOf(request), { ports: [request.port], hostDenialReason: () => undefined }),
  );
}

type ToolCallRequest = Extract<PolicyRequest, { kind: 'Tool' }> & { arguments: Json };

function explainToolCall(deps: ExplainCallDeps, request: ToolCallRequest): ExplainedDecision {
  const { decider, tools, schemas, workspace } = deps;
  const { arguments: input, ...listing } = request;
  const explained = decider.explain(request);
  const tool = tools.find(({ name }) => name === request.name);
  if (tool === undefined) return explained;
  // As in a call: what may not be listed is denied, then the schema is checked, then the policy sees the arguments.
  if (decider.explain(listing).effect === 'Deny') return explained;
  const accepted = refine(
    { ...explained, effect: explained.effect === 'Deny' ? 'Allow' : explained.effect },
    'input-schema',
    'the arguments match the input schema',
    () => assertInput(schemas, tool, input),
  );
  if (accepted.effect === 'Deny' || explained.effect === 'Deny') {
    return accepted.effect === 'Deny' ? accepted : explained;
  }
  const inner = requestOf(request.name, input);
  if (inner === undefined) return accepted;
  const innerDecision = decider.explain(inner);
  const trace = [...accepted.trace, ...innerDecision.trace];
  if (innerDecision.effect !== 'Allow') return { ...innerDecision, effect: 'Deny', trace };
  const permitted = { ...accepted, trace };
  if (inner.kind !== 'File') return permitted;
  return refine(permitted, 'workspace', 'the path is below the workspace', () =>
    writtenPath(inner.path, workspace, [workspace]),
  );
}

const FILE_TOOLS: ReadonlySet<string> = new Set<FileToolName>(['file_read', 'file_write', 'file_list', 'text_search']);

/** The request that the tool itself makes when it is called with this input. */
function requestOf(tool: string, input: Json): PolicyRequest | undefined {
  if (FILE_TOOLS.has(tool)) return fileRequest(tool as FileToolName, input);
  return tool === SEND_TOOL.name || tool === ASK_TOOL.name ? messageRequest(input) : memoryCallRequest(tool, input);
}

function urlOf({ host, port }: Extract<PolicyRequest, { kind: 'Network' }>): string {
  return `https://${host.includes(':') ? `[${host}]` : host}:${port}/`;
}

/** Adds a check of a real call to a decision that is not a denial. */
function refine(explained: ExplainedDecision, rule: string, passed: string, check: () => unknown): ExplainedDecision {
  if (explained.effect === 'Deny') return explained;
  const refusal = refusalOf(check);
  const step: Trace[number] =
    refusal === undefined ? { rule, verdict: 'passed', detail: passed } : { rule, verdict: 'denied', detail: refusal };
  const trace = [...explained.trace, step];
  return refusal === undefined
    ? { ...explained, trace }
    : { ...explained, effect: 'Deny', rule, reason: refusal, trace };
}

function refusalOf(check: () => unknown): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (isTemperError(error)) return error.message;
    throw error;
  }
}
