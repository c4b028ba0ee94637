import { resolve } from 'node:path';
import { whenAborted } from '../../lib/async/abort.ts';
import { systemClock } from '../../lib/clock.ts';
import { isTemperError } from '../../lib/errors.ts';
import { startReplay } from '../../models/replay/server.ts';
import { EXIT, type CliIo } from '../io.ts';

export interface ModelReplayOptions {
  /** Path of the YAML script. */
  script: string;
  /** Address to listen on; the loopback interface when absent. */
  host?: string;
  /** 0: any free port. */
  port: number;
}

/** Serves a replay script until interrupted. Exit 0: interrupted; 1: the script is invalid or the port is in use. */
export async function modelReplay(options: ModelReplayOptions, io: CliIo): Promise<number> {
  try {
    await using server = await startReplay({
      script: resolve(io.cwd, options.script),
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
    return EXIT.refused;
  }
}
