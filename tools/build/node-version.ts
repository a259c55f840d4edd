/** Major version of Node that programs are built for and require; the images and the workspace provide it. */
export const NODE_MAJOR = 24;
