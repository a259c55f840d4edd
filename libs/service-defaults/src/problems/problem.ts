/** An error answer as RFC 9457 describes it. `headers` are sent along and are not part of the body. */
export interface Problem {
  status: number;
  /** URI naming the kind of problem; `about:blank` when the status says it all. */
  type?: string;
  title?: string;
  detail?: string;
  /** What is wrong, by field. */
  errors?: Record<string, string[]>;
  headers?: Record<string, string>;
  /** Further members of the body. They cannot replace the standard ones. */
  extensions?: Record<string, unknown>;
}
