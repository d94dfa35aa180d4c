# Completion of ssdlab in fish; the program says what may come next, and whether it is a file.
function __ssdlab_complete
    set --local --export _SSDLAB_COMPLETE complete_fish
    set --local --export _TYPER_COMPLETE_FISH_ACTION $argv
    set --local --export _TYPER_COMPLETE_ARGS (commandline --cut-at-cursor --current-process)
    ssdlab 2>/dev/null
end
function __ssdlab_words
    set --local words (__ssdlab_complete get-args)
    set --local paths (commandline --current-token)\*
    for word in $words
        if test "$word" = "$paths" # It stands for paths.
            __fish_complete_path (commandline --current-token)
        else
            printf '%s\n' $word
        end
    end
end
complete --command ssdlab --no-files --condition "__ssdlab_complete is-args" --arguments "(__ssdlab_words)"
