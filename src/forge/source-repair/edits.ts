/** A replacement of a range of a source. */
export interface TextEdit {
  start: number;
  end: number;
  text: string;
}

/** Applies edits whose ranges do not overlap. */
export function applyEdits(source: string, edits: readonly TextEdit[]): string {
  let edited = source;
  for (const { start, end, text } of edits.toSorted((a, b) => b.start - a.start)) {
    edited = edited.slice(0, start) + text + edited.slice(end);
  }
  return edited;
}

/** Removes a range and keeps its line breaks, so that later lines keep their numbers. */
export function removal(source: string, start: number, end: number): TextEdit {
  return { start, end, text: source.slice(start, end).replace(/[^\n]/g, '') };
}
