/** Environment variables, injected by the command line. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The credentials of a request. */
export interface Credentials {
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsCredentials;
}

export interface TlsCredentials {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

/** One loaded configuration of a cluster. */
export interface LoadedCluster {
  readonly server: URL;
  readonly context?: string;
  readonly namespace: string | undefined;
  /** Reads the current tokens and certificates. */
  readonly read: () => Promise<Credentials>;
}
