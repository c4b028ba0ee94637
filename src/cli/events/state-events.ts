import { fileRecordStore } from '../../lib/file-record-store.ts';
import type { Json } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import { pastEvents } from '../../standalone/events/past-events.ts';
import { type CliIo, EXIT } from '../io.ts';
import { stateFolder } from '../state/state-folder.ts';
import { type EventsOutput, printEvents } from './print-events.ts';

/** Lists the latest events of a state folder, oldest first; also while a run uses it. */
export async function stateEvents(
  { state, output }: { state: string; output: EventsOutput },
  io: CliIo,
): Promise<number> {
  const events = await pastEvents(fileRecordStore(await stateFolder(io, state)));
  printEvents(events as unknown as Json[], printable(state, 200), output, io);
  return EXIT.ok;
}
