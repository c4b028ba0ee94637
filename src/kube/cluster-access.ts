import { TemperError } from '../lib/errors.ts';

/** Where the address of the API server and the credentials are read from. */
export type ClusterSource =
  /** `KUBECONFIG`, the file in the home folder, or the ServiceAccount of the pod, in this order. */
  | { readonly kind: 'default' }
  /** The ServiceAccount of the pod. */
  | { readonly kind: 'cluster' }
  | { readonly kind: 'file'; readonly path: string; readonly context?: string };

/** What a request carries, read anew as tokens and certificates are renewed. */
export interface Credentials {
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: {
    readonly ca?: string | Buffer;
    readonly cert?: string | Buffer;
    readonly key?: string | Buffer;
    readonly servername?: string;
    readonly rejectUnauthorized?: boolean;
  };
}

export interface ClusterAccess {
  readonly server: URL;
  /** Namespace of the context or of the pod, when there is one. */
  readonly namespace: string | undefined;
  credentials(): Promise<Credentials>;
  /** Forgets every token and certificate that was read. Called after the server refused them. */
  refresh(): Promise<void>;
}

/** Throws `TEMPER_KUBE_CONFIG` when no cluster can be read from the source. */
export function loadClusterAccess(_source: ClusterSource): Promise<ClusterAccess> {
  throw new TemperError('TEMPER_INTERNAL', 'not there yet');
}
