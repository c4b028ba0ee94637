import { systemClock } from '../../lib/clock.ts';
import { fileRecordStore } from '../../lib/file-record-store.ts';
import { closeStateSession } from '../../standalone/sessions/close-session.ts';
import { stateKeys } from '../../standalone/trust/state-key.ts';
import { type CliIo, EXIT } from '../io.ts';
import { closedSession } from './closed-session.ts';
import { configFolder } from '../state/config-folder.ts';
import { findSession } from '../state/sessions.ts';
import { stateFolder } from '../state/state-folder.ts';

export interface CloseSessionVerbOptions {
  session: string;
  /** Required when several agents have a session of this id. */
  agent?: string;
  endWork?: boolean;
  state: string;
  output: 'text' | 'json';
}

/** Closes a session of a state folder permanently. */
export async function closeSession(options: CloseSessionVerbOptions, io: CliIo): Promise<number> {
  const folder = await stateFolder(io, options.state);
  const found = await findSession(fileRecordStore(folder), options);
  const scope = { agent: found.agent, namespace: found.namespace, session: found.session };
  const keys = stateKeys(configFolder(io));
  const endWork = options.endWork === true;
  const receipt = await closeStateSession({ folder, keys, clock: systemClock, session: scope, endWork });
  closedSession({ session: scope.session, ...receipt }, options, io);
  return EXIT.ok;
}
