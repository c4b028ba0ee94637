import type { AgentProvider } from '../../agent/provider/port.ts';
import type { Model } from '../../models/port.ts';
import { AcpProvider } from './acp-provider.ts';
import { AgentSessions, type AgentSessionsDeps } from './agent-sessions.ts';

/** The providers of one agent, which share the processes of its program. */
export class ProgramProviders implements AsyncDisposable {
  readonly #sessions: AgentSessions;

  constructor(deps: AgentSessionsDeps) {
    this.#sessions = new AgentSessions(deps);
  }

  /** The provider whose model calls are charged by this model. */
  create(model: Model): AgentProvider {
    return new AcpProvider({ sessions: this.#sessions, model });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#sessions[Symbol.asyncDispose]();
  }
}
