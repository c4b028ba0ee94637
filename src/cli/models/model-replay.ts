import { whenAborted } from '../../lib/async/abort.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import { startReplay } from '../../models/replay/server.ts';
import { assertInputFile } from '../input/input-files.ts';
import { EXIT, exitCodeFor, type CliIo } from '../io.ts';

export interface ModelReplayOptions {
  /** Path of the YAML script. */
  script: string;
  /** Address to listen on; the loopback interface when absent. */
  host?: string;
  /** 0: any free port. */
  port: number;
}

/** Serves a replay script until interrupted. Exit 0: interrupted; 1: the script is invalid or the port is in use; 2: it cannot be read. */
export async function modelReplay(options: ModelReplayOptions, io: CliIo): Promise<number> {
  try {
    await using server = await startReplay({
      script: await assertInputFile(options.script, '--script', io),
      ...(options.host === undefined ? {} : { host: options.host }),
      port: options.port,
      clock: systemClock,
    });
    io.out(`${server.url}\n`);
    io.error(
      `replaying ${options.script}; base URL for OpenAI formats ${server.url}/v1, for Anthropic ${server.url}\n`,
    );
    await whenAborted(io.signal);
    return EXIT.ok;
  } catch (error) {
    if (!isTemperError(error)) throw error;
    io.error(`temper: ${error.code}: ${error.message}\n`);
    return exitCodeFor(error.code);
  }
}
