import type { Rule } from 'eslint';

const MARKER = /\b(TODO|FIXME|XXX|HACK)\b(?!\([^)]{3,}\): \S)/;

/** A marker without a reason is a wish nobody owns: `TODO(why it waits): what to do`. */
export const todoHasReason: Rule.RuleModule = {
  meta: {
    type: 'suggestion',
    messages: { reason: "write '{{marker}}(why it waits): what to do', or do it" },
  },
  create(context) {
    return {
      Program() {
        for (const comment of context.sourceCode.getAllComments()) {
          const marker = MARKER.exec(comment.value)?.[1];
          if (marker !== undefined && comment.loc) {
            context.report({ loc: comment.loc, messageId: 'reason', data: { marker } });
          }
        }
      },
    };
  },
};
