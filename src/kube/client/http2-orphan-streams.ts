import { channel } from 'node:diagnostics_channel';
import { type ClientHttp2Stream, constants } from 'node:http2';

const CREATED = 'http2.client.stream.created';

/**
 * Works around a defect of Node's http2 client. When a request is aborted before it is fully written, Node drops its stream without resetting
 * it at the server. The response then arrives on a new stream that has no owner and no listeners: a connection error on it would crash the
 * process, and the response to a watch would be sent forever. This class closes such orphan streams with CANCEL.
 *
 * The diagnostics channel is the only access to such a stream. It publishes every new client stream; only an orphan stream already has a
 * response status in its headers.
 */
export class OrphanStreamGuard implements Disposable {
  constructor() {
    channel(CREATED).subscribe(cancelOrphanStream);
  }

  /** Stops closing new orphan streams; streams that are already closed stay closed. */
  [Symbol.dispose](): void {
    channel(CREATED).unsubscribe(cancelOrphanStream);
  }
}

function cancelOrphanStream(message: unknown): void {
  const { stream, headers } = message as { stream: ClientHttp2Stream; headers?: Record<string, unknown> };
  if (headers?.[constants.HTTP2_HEADER_STATUS] === undefined) return;
  stream.on('error', () => {});
  stream.close(constants.NGHTTP2_CANCEL);
}
