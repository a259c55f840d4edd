import type { z } from 'zod';

/** Configuration is missing or wrong. The message names variables and what is wrong with them, never their values. In logs `problems`
 *  stands for the message and the stack. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';

  /** @param problems what is wrong, by variable name */
  constructor(readonly problems: Readonly<Record<string, readonly string[]>>) {
    const lines = Object.entries(problems).map(
      ([variable, messages]) => `  ${variable}: ${messages.join('; ')}`,
    );
    super(`invalid configuration:\n${lines.join('\n')}`);
  }
}

/** Reads a service's configuration once, at boot, and freezes it. An empty variable counts as absent, so that `KEY=` in an environment
 *  file means "use the default".
 *  @param env defaults to the process environment
 *  @throws {ConfigError} if a variable is missing or wrong; it never carries a value */
export function loadConfig<S extends z.ZodType>(
  schema: S,
  env: NodeJS.ProcessEnv = process.env,
): Readonly<z.output<S>> {
  const given = Object.fromEntries(
    Object.entries(env).filter(([, value]) => value !== undefined && value !== ''),
  );
  // zod leaves the input out of its issues unless asked (`reportInput`), so a message cannot quote a secret.
  const parsed = schema.safeParse(given, { reportInput: false });
  if (parsed.success) return Object.freeze(parsed.data);
  const problems: Record<string, string[]> = {};
  for (const issue of parsed.error.issues) {
    const variable = String(issue.path[0] ?? 'configuration');
    const absent = issue.path.length > 0 && given[variable] === undefined;
    (problems[variable] ??= []).push(absent ? 'is required' : issue.message);
  }
  throw new ConfigError(problems);
}
