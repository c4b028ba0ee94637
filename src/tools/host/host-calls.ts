/**
 * The broker between guest code and the host: one broker per tool call. A host function works when the tool declared it
 * and the policy allows it now; each host call checks both again.
 */
import type { ToolApi } from '../../api/v1alpha1/common.ts';
import { isTemperError, TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';
import { type Json, member } from '../../lib/json.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { FetchRequest, SafeFetch } from '../../net/fetch.ts';
import { compilePattern, matches, type Pattern } from '../../policy/patterns/pattern.ts';
import type { Decision, PolicyRequest } from '../../policy/types.ts';
import type { HostCalls } from '../../sandbox/port.ts';
import { type FileReader, type ResolvedFile, readFileBelow } from './host-files.ts';

/** The host functions, hosts and paths that a tool declares. */
interface Requirements {
  readonly apis: readonly ToolApi[];
  /** Host patterns, with a port where it is not 443. */
  readonly domains: readonly string[];
  /** Path patterns, relative to the workspace or absolute. */
  readonly paths: readonly string[];
}

/** One use of a host function, for the records. Contains no contents and no query strings. */
export interface HostCallFact {
  api: string;
  /** The host or the path. */
  target: string;
  /** `allowed`, or the code of the refusal or failure. */
  outcome: string;
}

export interface HostCallsOptions {
  requires: Requirements;
  /** Asks the policy at each call, so that a changed policy takes effect. An escalation is a refusal, because guest code cannot wait for an approver. */
  decide(request: PolicyRequest): Decision;
  fetch: SafeFetch;
  /** Absolute path of the folder that relative paths start from. */
  workspace: string;
  /** Absolute paths of the folders below which files may be read; only the workspace when absent. */
  roots?: readonly string[];
  /** Absolute paths of the folders that no tool may open. */
  protectedFolders?: readonly string[];
  /** Reads files when the workspace is on another machine. */
  readFile?: FileReader;
  onCall?: (fact: HostCallFact) => void;
}

/** Throws TEMPER_PATTERN_INVALID when the tool declares a malformed pattern. */
export function createHostCalls(options: HostCallsOptions): HostCalls {
  const domains = options.requires.domains.map((text) => compilePattern(text, 'host'));
  const paths = options.requires.paths.map((text) => compilePattern(text, 'path'));
  return {
    async call(api, input, op) {
      const target = targetOf(api, input);
      try {
        const answer = await dispatch(options, domains, paths, api, input, op);
        options.onCall?.({ api, target, outcome: 'allowed' });
        return answer;
      } catch (error) {
        options.onCall?.({ api, target, outcome: isTemperError(error) ? error.code : 'TEMPER_INTERNAL' });
        throw error;
      }
    },
  };
}

/** Denies every host call, for runs without any permission such as the tests of a forge. */
export const deniedHostCalls: HostCalls = {
  call(api) {
    return Promise.reject(new TemperError('TEMPER_HOST_CALL_DENIED', `${api} is not available in this run`));
  },
};

function dispatch(
  options: HostCallsOptions,
  domains: readonly Pattern[],
  paths: readonly Pattern[],
  api: string,
  input: Json,
  op: CallOptions,
): Promise<Json> {
  if (!options.requires.apis.some((declared) => declared === api)) {
    throw new TemperError('TEMPER_HOST_CALL_DENIED', `the tool did not declare ${printable(api, 32)}`);
  }
  if (api === 'fetch') return fetchFor(options, domains, input, op);
  if (api === 'fs.readFile') return readFor(options, paths, input, op);
  throw new TemperError('TEMPER_HOST_CALL_DENIED', `${printable(api, 32)} is not a host function`);
}

async function fetchFor(
  options: HostCallsOptions,
  domains: readonly Pattern[],
  input: Json,
  op: CallOptions,
): Promise<Json> {
  const answer = await options.fetch(
    fetchRequest(input),
    {
      ports: domains.flatMap((pattern) => portOf(pattern.text)),
      hostDenialReason(host, port) {
        const subject = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
        if (!domains.some((pattern) => matches(pattern, subject))) {
          return `the tool declared ${describe(options.requires.domains)}, and not ${subject}`;
        }
        const decision = options.decide({ kind: 'Network', host, port });
        return decision.effect === 'Allow' ? undefined : `${decision.reason} (${decision.rule})`;
      },
    },
    op,
  );
  return { ...answer };
}

/** Builds the request from the guest's object; reads each member once. */
function fetchRequest(input: Json): FetchRequest {
  const url = member(input, 'url');
  const method = member(input, 'method');
  const body = member(input, 'body');
  const headers = member(input, 'headers');
  if (typeof url !== 'string') throw new TemperError('TEMPER_FETCH_DENIED', 'fetch needs a URL as text');
  const request: FetchRequest = { url, headers: headerFields(headers) };
  if (typeof method === 'string') request.method = method;
  if (typeof body === 'string') request.body = body;
  return request;
}

/** Reads headers given as an object of texts, or as pairs of texts. */
function headerFields(headers: Json | undefined): Record<string, string> {
  if (headers === undefined || headers === null) return {};
  const pairs: unknown[] = Array.isArray(headers) ? headers : Object.entries(headers);
  const fields = new Map<string, string>();
  for (const pair of pairs) {
    const [name, value] = Array.isArray(pair) ? (pair as unknown[]) : [];
    if (typeof name !== 'string' || (typeof value !== 'string' && typeof value !== 'number')) {
      throw new TemperError('TEMPER_FETCH_DENIED', 'headers must be an object whose values are text');
    }
    fields.set(name, String(value));
  }
  return Object.fromEntries(fields);
}

function portOf(pattern: string): number[] {
  const digits = /:(\d{1,5})$/.exec(pattern)?.[1];
  return digits === undefined ? [] : [Number(digits)];
}

async function readFor(
  options: HostCallsOptions,
  paths: readonly Pattern[],
  input: Json,
  op: CallOptions,
): Promise<Json> {
  const path = member(input, 'path');
  if (typeof path !== 'string') throw new TemperError('TEMPER_FILE_DENIED', 'fs.readFile needs a path as text');
  const { workspace, readFile } = options;
  const refuse = (found: ResolvedFile): string | undefined => refuseFile(options, paths, found);
  if (readFile !== undefined) return readFile(path, refuse, op);
  return readFileBelow(path, workspace, options.roots ?? [workspace], refuse, options.protectedFolders);
}

function refuseFile(options: HostCallsOptions, paths: readonly Pattern[], found: ResolvedFile): string | undefined {
  const pathForms = found.relative === undefined ? [found.absolute] : [found.absolute, found.relative];
  if (!paths.some((pattern) => pathForms.some((path) => matches(pattern, path)))) {
    return `the tool declared ${describe(options.requires.paths)}`;
  }
  const decision = options.decide({ kind: 'File', path: found.absolute, access: 'read' });
  return decision.effect === 'Allow' ? undefined : `${decision.reason} (${decision.rule})`;
}

function describe(patterns: readonly string[]): string {
  return patterns.length === 0 ? 'none' : printable(patterns.join(', '), 200);
}

function targetOf(api: string, input: Json): string {
  const text = member(input, api === 'fetch' ? 'url' : 'path');
  if (typeof text !== 'string') return '';
  return printable(api === 'fetch' ? (URL.parse(text)?.host ?? text) : text, 256);
}
