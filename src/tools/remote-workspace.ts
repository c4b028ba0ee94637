import type { Json } from '../lib/json.ts';
import type { Op } from '../lib/operation.ts';
import type { FileReader } from './host-files.ts';

/** A workspace that another container holds. What is asked of it was permitted before; it looks only at where files really lie. */
export interface RemoteWorkspace {
  /** Runs a file tool there. Throws what the tool throws, or TEMPER_SANDBOX_UNAVAILABLE. */
  callTool(name: string, input: Json, op: Op): Promise<Json>;
  /** Reads one file for guest code. */
  readFile: FileReader;
}
