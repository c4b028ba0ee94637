/** The options of `temper run`. */
export interface RunOptions {
  filename: string[];
  message?: string[];
  agent?: string;
  /** Namespace of the agent, when agents of several namespaces have its name. */
  namespace?: string;
  session?: string;
  /** Continue the last session of the agent. */
  continue?: boolean;
  /** Starts the runs of schedules until an interrupt; no message of the user. */
  serve?: boolean;
  /** The port on which the requests of webhooks are received; only with `serve`. */
  webhooks?: number;
  /** The port on which callers over A2A reach the agents that list them; only with `serve`. */
  a2a?: number;
  workspace: string;
  /** Folders with skills. */
  skills?: string[];
  providers?: string;
  modelScript?: string;
  state: string;
  output?: 'text' | 'json';
}
