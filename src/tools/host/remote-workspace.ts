import type { Json } from '../../lib/json.ts';
import type { CallOptions } from '../../lib/call-options.ts';
import type { FileReader } from './host-files.ts';

/** A workspace in another container. The caller has already asked the policy; the remote side only checks the real paths of files. */
export interface RemoteWorkspace {
  /** Runs a file tool in the other container. Throws the errors of the tool, or TEMPER_SANDBOX_UNAVAILABLE. */
  callTool(name: string, input: Json, op: CallOptions): Promise<Json>;
  /** Reads one file for guest code. */
  readFile: FileReader;
}
