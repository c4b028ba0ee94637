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
  workspace: string;
  providers?: string;
  modelScript?: string;
  state: string;
  output?: 'text' | 'json';
}
