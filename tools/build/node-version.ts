/** The Node that programs are built for, and need: the images have it, and the workspace brings it. */
export const NODE_MAJOR = 24;
