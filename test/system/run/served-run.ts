import { pollValue, StopPolling } from '../../support/poll.ts';
import type { Project } from '../project.ts';

/** A process that serves, and where. */
export interface ServedRun extends AsyncDisposable {
  /** Without a path. */
  readonly url: string;
  readonly notes: () => string;
  end(signal: NodeJS.Signals): Promise<number | null>;
}

/** `temper run --serve` with an option that opens a port. `address`: finds the URL of the server in the notes. */
export async function serveRun(project: Project, options: readonly string[], address: RegExp): Promise<ServedRun> {
  const { child, ended } = project.run('--serve', ...options);
  let [notes, isEnded] = ['', false];
  child.stderr?.on('data', (text: string) => (notes += text));
  void ended.then(() => (isEnded = true));
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    child.kill(signal);
    return (await ended).code;
  };
  const find = (): string | undefined => {
    if (isEnded) throw new StopPolling(notes);
    return /serving/.test(notes) ? address.exec(notes)?.[1] : undefined;
  };
  const url = (await pollValue('the address of the server', find, (found) => found !== undefined)) ?? '';
  const dispose = async (): Promise<void> => void (await end('SIGKILL'));
  return { url, notes: () => notes, end, [Symbol.asyncDispose]: dispose };
}
