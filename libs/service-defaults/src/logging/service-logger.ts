import type { LoggerService } from '@nestjs/common';
import { SYSTEM_CLOCK } from '@platform/time';
import { pino } from 'pino';
import type { DestinationStream, Logger } from 'pino';
import { ConfigError } from '../config/config';
import { currentTrace } from '../tracing/trace-context';
import { hideTokens, logSafeError } from './log-safe';

/** Members that are never shown, whatever object they are on (top level and one below). */
const SECRET_MEMBERS = [
  'authorization',
  'cookie',
  'password',
  'secret',
  'sharedSecret',
  'authenticationCode',
  'token',
  'accessToken',
  'refreshToken',
  'bearerTokenOverride',
  'settingValue',
  'body',
  'clientSecret',
  'client_secret',
  'id_token',
  'code_verifier',
  'codeVerifier',
  'parameters',
];

/** Nest's levels in pino's words. */
type Level = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace';

/** How a request is logged: at `debug` where programs ask again and again. */
export type RequestLevel = Extract<Level, 'info' | 'debug'>;

/** Where log lines go: buffered, so that a request does not wait for the terminal or the disk. */
export interface LogSink extends DestinationStream {
  flushSync(): void;
}

/**
 * Structured logs (one JSON object a line) as the logger of Nest and of requests. Errors and secrets are
 * cleaned.
 */
export class ServiceLogger implements LoggerService {
  private readonly lines: Logger;
  private readonly texts: Logger;
  private readonly requests: Logger;

  constructor(
    options: { name: string; level: string },
    private readonly sink: LogSink = bufferedStandardOutput(),
  ) {
    const shape = {
      base: { service: options.name },
      level: options.level,
      timestamp: timeMember(),
      formatters: { level: (label: string) => ({ level: label }) },
      serializers: { err: (error: unknown) => logSafeError(error) },
    };
    const redact = { paths: SECRET_MEMBERS.flatMap((name) => [name, `*.${name}`]), censor: '[redacted]' };
    this.lines = pino({ ...shape, redact, mixin: traceMember }, sink);
    // A text has no members to redact, and a consumer or a relay writes one for each message.
    this.texts = pino({ ...shape, mixin: traceMember }, sink);
    // Request lines are built here from safe members only: redaction would only cost time.
    this.requests = pino(shape, sink);
  }

  log(message: unknown, ...rest: unknown[]): void {
    this.write('info', message, rest);
  }

  error(message: unknown, ...rest: unknown[]): void {
    this.write('error', message, rest);
  }

  warn(message: unknown, ...rest: unknown[]): void {
    this.write('warn', message, rest);
  }

  debug(message: unknown, ...rest: unknown[]): void {
    this.write('debug', message, rest);
  }

  verbose(message: unknown, ...rest: unknown[]): void {
    this.write('trace', message, rest);
  }

  fatal(message: unknown, ...rest: unknown[]): void {
    this.write('fatal', message, rest);
    this.flush();
  }

  /** @param level of the lines asked about */
  logsRequests(level: RequestLevel): boolean {
    return this.requests.isLevelEnabled(level);
  }

  /** One line for one answered request. `line` must hold safe members only. */
  request(line: object, level: RequestLevel): void {
    this.requests[level](line, 'request');
  }

  /** Writes out what is buffered; the last thing to do before the process ends. */
  flush(): void {
    this.sink.flushSync();
  }

  /**
   * Nest passes the context as the last text and, for errors, a stack before it; an error may be anywhere.
   */
  private write(level: Level, message: unknown, rest: readonly unknown[]): void {
    if (!this.lines.isLevelEnabled(level)) return;
    const [context, ...others] = rest;
    if (typeof message === 'string' && others.length === 0 && isContext(context)) {
      this.texts[level]({ context }, hideTokens(message));
    } else this.writeMembers(level, message, rest);
    if (level === 'error') this.flush();
  }

  private writeMembers(level: Level, message: unknown, rest: readonly unknown[]): void {
    const last = rest.at(-1);
    const context = typeof last === 'string' && !isStack(last) ? { context: last } : {};
    const err = [message, ...rest].find((each) => each instanceof Error);
    // Whoever starts a program needs the list of variables, and no stack trace around it.
    if (err instanceof ConfigError)
      return this.lines[level]({ ...context, problems: err.problems }, 'invalid configuration');
    const members = rest.find(
      (each) => typeof each === 'object' && each !== null && !(each instanceof Error),
    );
    const stack = rest.find((each) => typeof each === 'string' && isStack(each));
    this.lines[level](
      {
        ...context,
        ...(isRecord(message) ? message : {}),
        ...(members as object | undefined),
        ...(err === undefined ? {} : { err }),
        ...(err === undefined && stack !== undefined ? { stack } : {}),
      },
      textOf(message),
    );
  }
}

/**
 * The time of a line, in UTC. Lines of one millisecond share its text: printing a date costs more than the
 * rest of a line.
 */
function timeMember(): () => string {
  let textAtMs = NaN;
  let text = '';
  return () => {
    const now = SYSTEM_CLOCK.now();
    if (now.getTime() !== textAtMs) {
      textAtMs = now.getTime();
      text = `,"time":"${now.toISOString()}"`;
    }
    return text;
  };
}

/** The trace of a line; its span, too, where this process records one. */
function traceMember(): object {
  const trace = currentTrace();
  if (trace === undefined) return {};
  return trace.span === undefined
    ? { traceId: trace.traceId }
    : { traceId: trace.traceId, spanId: trace.spanId };
}

/** What Nest passes behind a text: nothing, or where it comes from. */
function isContext(value: unknown): value is string | undefined {
  return value === undefined || (typeof value === 'string' && !isStack(value));
}

function isStack(text: string): boolean {
  return text.includes('\n    at ');
}

function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !(value instanceof Error);
}

function textOf(message: unknown): string | undefined {
  if (typeof message === 'string') return hideTokens(message);
  if (message instanceof Error) return hideTokens(message.message);
  return isRecord(message) ? undefined : String(message);
}

let standardOutput: LogSink | undefined;

/** One sink a process: two would interleave their buffers. */
function bufferedStandardOutput(): LogSink {
  return (standardOutput ??= withoutReaders(
    takingBytes(
      pino.destination({
        fd: 1,
        sync: false,
        contentMode: 'buffer',
        minLength: 8_192,
        maxWrite: 16_384,
        periodicFlush: 500,
      }),
    ),
  ));
}

/**
 * For each line given as text, sonic-boom joins all that waits and counts its bytes anew: several KB a line.
 */
function takingBytes(sink: Destination): Destination {
  const write = sink.write.bind(sink) as (bytes: string | Buffer) => boolean;
  sink.write = (line) => write(Buffer.from(line));
  return sink;
}

type Destination = ReturnType<typeof pino.destination>;

/**
 * When nobody reads the log any more, a service works on without it. pino sees to that after an error event;
 * `flushSync` throws instead.
 */
function withoutReaders(sink: Destination): LogSink {
  const flushSync = sink.flushSync.bind(sink);
  sink.flushSync = () => {
    try {
      flushSync();
    } catch (error) {
      sink.emit('error', error);
    }
  };
  return sink;
}
