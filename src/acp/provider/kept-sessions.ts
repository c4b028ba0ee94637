import type { ProgramHome } from '../../sandbox/confined/program-home.ts';
import type { AgentSession } from '../client/agent-session.ts';

/** Sessions without a process whose home is kept. The one that ended longest ago is dropped first. */
const MAX_KEPT = 16;
/** A larger home is not kept. */
const MAX_HOME = { entries: 4_096, bytes: 64 * 1_024 * 1_024 };

/** What an agent needs to go on with a session: the home in which it recorded it, and its own name for it. */
export interface KeptSession {
  home: ProgramHome;
  id: string;
  /** Items of the session that the agent knows. */
  known: number;
  /** The context that it got. */
  context: string | undefined;
}

/** Sessions that an agent can load in a new process. */
export class KeptSessions implements AsyncDisposable {
  /** In the order in which their processes ended. */
  readonly #kept = new Map<string, KeptSession>();

  /** Ends the process of an agent and keeps its home, if the agent loads sessions. */
  async keep(session: string, agent: AgentSession, state: Pick<KeptSession, 'known' | 'context'>): Promise<void> {
    await this.drop(session);
    if (!agent.loadsSessions) {
      await agent.process[Symbol.asyncDispose]();
      return;
    }
    const home = await agent.process.leave();
    if (home === undefined) return;
    if (!(await home.fits(MAX_HOME).catch(() => false))) {
      await home[Symbol.asyncDispose]();
      return;
    }
    this.#kept.set(session, { home, id: agent.id, known: state.known, context: state.context });
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MAX_KEPT && oldest !== undefined) await this.drop(oldest);
  }

  /** Hands over what was kept of the session, if it is at this state. */
  async take(session: string, state: Pick<KeptSession, 'known' | 'context'>): Promise<KeptSession | undefined> {
    const kept = this.#kept.get(session);
    if (kept === undefined) return undefined;
    if (kept.known === state.known && kept.context === state.context) {
      this.#kept.delete(session);
      return kept;
    }
    await this.drop(session);
    return undefined;
  }

  async drop(session: string): Promise<void> {
    const kept = this.#kept.get(session);
    this.#kept.delete(session);
    await kept?.home[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#kept.keys()].map((session) => this.drop(session)));
  }
}
