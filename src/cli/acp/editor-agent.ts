import {
  agent as agentApp,
  type AgentApp,
  type AgentContext,
  methods,
  PROTOCOL_VERSION,
  RequestError,
  type StopReason,
} from '@agentclientprotocol/sdk';
import type { Engine } from '../../engine/engine.ts';
import { SerialQueue } from '../../lib/async/serial-queue.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError, messageOf } from '../../lib/errors.ts';
import { ulids } from '../../lib/ids.ts';
import type { RecordStore } from '../../lib/record-store.ts';
import type { AgentEvent } from '../../tools/events.ts';
import { VERSION } from '../version.ts';
import { askEditor } from './permissions.ts';
import { promptText } from './prompt-text.ts';
import { SessionUpdates } from './session-updates.ts';

/** Deadline of one prompt, including the time it waits for approvals. */
const PROMPT_TIMEOUT_MS = 24 * 3_600_000;

export interface EditorAgentDeps {
  engine: Engine;
  records: RecordStore;
  /** Throws for a folder that the agent does not work in. */
  assertFolder(cwd: string): Promise<void>;
  /** Aborted when the command ends. */
  signal: AbortSignal;
  note(text: string): void;
}

/** The prompt that runs: events of the engine belong to it. */
interface RunningPrompt {
  session: string;
  client: AgentContext;
  updates: SessionUpdates;
  signal: AbortSignal;
}

/** An agent of `temper run` as an agent of the Agent Client Protocol. Prompts of all sessions run one after another. */
export class EditorAgent {
  readonly #deps: EditorAgentDeps;
  readonly #prompts = new SerialQueue();
  /** Updates arrive in the order of the events. */
  readonly #updates = new SerialQueue();
  /** The prompts of each session that have not ended. */
  readonly #cancels = new Map<string, Set<AbortController>>();
  #running: RunningPrompt | undefined;

  constructor(deps: EditorAgentDeps) {
    this.#deps = deps;
  }

  /** Call with each event of the engine. What happens in the background is shown with the prompt that runs. */
  observe(event: AgentEvent, of: string | undefined): void {
    const running = this.#running;
    if (running === undefined || (of !== undefined && of !== running.session)) return;
    const { session: sessionId, client, updates, signal } = running;
    for (const update of updates.updatesOf(event)) {
      void this.#updates
        .run(() => client.notify(methods.client.session.update, { sessionId, update }))
        .catch(() => undefined);
    }
    if (event.type !== 'approval-requested') return;
    const { records } = this.#deps;
    askEditor(event, sessionId, { records, client, signal }).catch((error: unknown) => {
      if (!signal.aborted)
        this.#deps.note(`the editor did not decide about ${event.request}: ${messageOf(error, 300)}`);
    });
  }

  app(): AgentApp {
    return agentApp({ name: 'temper' })
      .onRequest(methods.agent.initialize, () => ({
        protocolVersion: PROTOCOL_VERSION,
        agentInfo: { name: 'temper', version: VERSION },
        agentCapabilities: {
          loadSession: false,
          promptCapabilities: { image: false, audio: false, embeddedContext: false },
        },
        authMethods: [],
      }))
      .onRequest(methods.agent.session.new, async ({ params }) => {
        await this.#deps.assertFolder(params.cwd);
        if (params.mcpServers.length > 0) this.#deps.note('MCP servers of the editor are not used');
        const sessionId = ulids.next('session');
        this.#cancels.set(sessionId, new Set());
        return { sessionId };
      })
      .onRequest(methods.agent.session.prompt, ({ params, client }) =>
        this.#prompt(params.sessionId, promptText(params.prompt), client),
      )
      .onNotification(methods.agent.session.cancel, ({ params }) => {
        for (const controller of this.#cancels.get(params.sessionId) ?? []) controller.abort(new Error('cancelled'));
      });
  }

  async #prompt(session: string, text: string, client: AgentContext): Promise<{ stopReason: StopReason }> {
    const open = this.#cancels.get(session);
    if (open === undefined) throw RequestError.invalidParams(undefined, 'no such session; create one with session/new');
    const controller = new AbortController();
    open.add(controller);
    const signal = AbortSignal.any([this.#deps.signal, controller.signal]);
    try {
      return {
        stopReason: await this.#prompts.run(() =>
          this.#handle({ session, client, updates: new SessionUpdates(), signal }, text),
        ),
      };
    } finally {
      open.delete(controller);
    }
  }

  async #handle(prompt: RunningPrompt, text: string): Promise<StopReason> {
    const { engine } = this.#deps;
    const { session, signal } = prompt;
    const id = ulids.next('message');
    const op = { signal, deadline: systemClock.monotonic() + PROMPT_TIMEOUT_MS, key: id };
    if (signal.aborted) return 'cancelled';
    this.#running = prompt;
    try {
      await engine.submitPendingImports(session, op);
      const { finishReason, parked } = await engine.handle({ session, text, message: id, rootMessage: id }, op);
      if (parked !== undefined) this.#deps.note(`the session waits for an approval: ${parked.join(', ')}`);
      return finishReason === 'truncated' ? 'max_tokens' : finishReason === 'refusal' ? 'refusal' : 'end_turn';
    } catch (error) {
      return this.#stopReasonOf(error, signal);
    } finally {
      this.#running = undefined;
      await this.#updates.idle();
    }
  }

  /** A limit is a regular end; other failures are errors of the request. */
  #stopReasonOf(error: unknown, { aborted }: AbortSignal): StopReason {
    if (aborted) return 'cancelled';
    if (isTemperError(error, 'TEMPER_TURN_LIMIT') || isTemperError(error, 'TEMPER_STEP_LIMIT'))
      return 'max_turn_requests';
    const code = isTemperError(error) ? error.code : 'TEMPER_INTERNAL';
    throw RequestError.internalError({ code }, `${code}: ${messageOf(error, 1_000)}`);
  }
}
