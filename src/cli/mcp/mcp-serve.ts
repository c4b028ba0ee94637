import { assertSessionId } from '../../agent/session/session-id.ts';
import { systemClock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/errors.ts';
import { ulids } from '../../lib/ids.ts';
import { printable } from '../../lib/printable.ts';
import { serveLines } from '../../mcp/server/serve-lines.ts';
import type { ServedToClient } from '../../mcp/server/served.ts';
import type { TeamEvents } from '../../standalone/team/team-events.ts';
import { DEFAULT_STATE } from '../cluster/options.ts';
import { type CliIo, writeJsonLine } from '../io.ts';
import { withServedAgent, type ServingOptions, type ServingProcess } from '../serving/serving-process.ts';
import { VERSION } from '../version.ts';
import { AskedAgent } from './ask-agent.ts';
import { ClientTools } from './client-tools.ts';
import { sessionResources } from './session-resources.ts';

export interface McpServeOptions extends ServingOptions {
  /** The session of the calls; a new one when absent. */
  session?: string;
}

/** Serves the tools of an agent to one client over the Model Context Protocol on standard input and output, until the input ends. */
export async function mcpServe(options: McpServeOptions, outer: CliIo): Promise<number> {
  const session = options.session ?? ulids.next('session');
  assertSessionId(session);
  let agent: AskedAgent | undefined;
  let isOwn: (source: Parameters<TeamEvents>[1]) => boolean = () => false;
  const events: TeamEvents = (event, source) => {
    if (isOwn(source)) agent?.observe(event);
  };
  // No user is here to decide: a call that needs an approval says so at once.
  return withServedAgent(options, outer, { hasApprover: false, events }, async (serving) => {
    const { io, scope, own } = serving;
    isOwn = (source) =>
      source.session === session && source.name === scope.name && source.namespace === scope.namespace;
    agent = askedAgent(serving, session, options);
    const connection = ulids.next('message');
    const tools = new ClientTools({
      calls: own.engine.clientCalls,
      client: { session, connection },
      agent,
      now: () => systemClock.monotonic(),
      newId: () => ulids.next('call'),
      howToDecide: (request) => howToDecide(request, options),
    });
    await using _imports = pendingImports(serving, session);
    const served = servedToClient(serving, tools);
    try {
      await serveLines(served, { lines: io.lines(), write: (message) => writeJsonLine(io, message) }, io.signal);
    } finally {
      await tools.idle();
    }
  });
}

function servedToClient({ standalone, scope, own }: ServingProcess, tools: ClientTools): ServedToClient {
  return {
    tools,
    version: VERSION,
    resources: sessionResources(standalone.records, scope),
    instructions: `The tools of the Temper agent ${scope.name}, under its policy, and the agent itself as ask_agent. A call that needs an approval fails with TEMPER_APPROVAL_PENDING and the command with which a user decides; then make the same call again.`,
    onToolsChange: (listener) => own.onToolsChange(listener),
  };
}

function askedAgent({ standalone, scope }: ServingProcess, session: string, options: McpServeOptions): AskedAgent {
  return new AskedAgent({
    session,
    now: () => systemClock.monotonic(),
    newId: () => ulids.next('message'),
    handle: (message, op) => standalone.handle(scope, message, op),
    unended: () => standalone.unended(scope, session),
    howToDecide: (request) => howToDecide(request, options),
  });
}

function howToDecide(request: string, { state }: McpServeOptions): string {
  const folder = state === DEFAULT_STATE ? '' : ` --state ${printable(state, 400)}`;
  return `temper approve ${request} --reason …${folder} (or temper deny)`;
}

/** Imports that wait for a session go through the forge beside the client, whose list of tools then changes. */
function pendingImports({ io, own }: ServingProcess, session: string): AsyncDisposable {
  const stop = new AbortController();
  const signal = AbortSignal.any([io.signal, stop.signal]);
  const op = { signal, deadline: Number.POSITIVE_INFINITY, key: ulids.next('message') };
  const work = own.engine.submitPendingImports(session, op).catch((error: unknown) => {
    if (!signal.aborted) io.error(`note: imported tools are not available: ${printable(messageOf(error, 300))}\n`);
  });
  return {
    async [Symbol.asyncDispose]() {
      stop.abort(new Error('the client has left'));
      await work;
    },
  };
}
