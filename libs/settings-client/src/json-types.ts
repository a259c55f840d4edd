import type { JsonValue } from './platform-setting';

/** A value that nobody may change, with all that is in it: values of a watch are frozen, because all readers share them. */
export type DeepReadonly<T> = [JsonValue] extends [T]
  ? T
  : T extends object
    ? { readonly [Member in keyof T]: DeepReadonly<T[Member]> }
    : T;

/**
 * `T` where JSON can hold it, also an interface, which has no index signature; never for what JSON would lose: functions, symbols, bigints,
 * and therefore objects with methods, such as dates and maps.
 */
export type JsonCompatible<T> = [T] extends [JsonValue | undefined]
  ? T
  : T extends (...args: never[]) => unknown
    ? never
    : T extends object
      ? { readonly [Member in keyof T]: JsonCompatible<T[Member]> }
      : T extends string | number | boolean | null | undefined
        ? T
        : never;
