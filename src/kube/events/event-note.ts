/** The object of an event (`involvedObject`). */
export interface EventSubject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; uid?: string; resourceVersion?: string };
}

export interface EventNote {
  type: 'Normal' | 'Warning';
  /** CamelCase; the same as the reason of the related condition. */
  reason: string;
  /** Human-readable, cut to a thousand characters. Must not contain secrets. */
  message: string;
}
